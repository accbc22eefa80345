//! The side of a log that publishes: numbers events, hands them to the server in batches, and knows which arrived.

use std::time::Duration;

use bytes::Bytes;
use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, LogOutline, StreamEvent, StreamStatus, TerminalKind,
};
use tokio::time::Instant;

use super::link::{Append, Reply, Verdict};
use super::log::{Observed, RunLog, State};
use super::options::RedisOptions;
use super::outline::Outline;
use super::spill::Spilling;

/// So many events are not kept waiting for more.
const BATCH_EVENTS: u64 = 16;
/// What one append carries at most, where a server that was slow or away left a backlog.
pub(super) const MOST_EVENTS: usize = 256;
pub(super) const MOST_BYTES: usize = 1024 * 1024;
/// After so long without an answer viewers on this node are served from its memory, if no durable log takes what waits.
const SHOW_WHAT_WAITS_AFTER: Duration = Duration::from_secs(1);

/// What a publishing node knows of its stream beyond the outline, which counts what it published.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) attempt: u32,
    /// The server has agreed that this attempt owns the stream, and said where it stands.
    pub(super) claimed: bool,
    /// The newest event that the server has.
    pub(super) acked: u64,
    /// The end that waits for the server.
    pub(super) end: Option<TerminalKind>,
    /// The server is to be told that the run waits for a person.
    waiting: bool,
    /// When the server last told something of this stream.
    pub(super) answered_at: Instant,
    /// Since when the server gives no answer.
    pub(super) failing_since: Option<Instant>,
    /// What the durable log has.
    pub(super) spilling: Spilling,
    /// Somebody sends.
    at_work: bool,
    /// Somebody waits for what is being sent.
    pub(super) urgent: bool,
}

/// Why an event was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The attempt must claim the stream first.
    NotOwner,
    /// It may not.
    Bridge(BridgeError),
}

impl Owner {
    pub(super) fn of(attempt: u32, claimed: bool, acked: u64, spilling: Spilling) -> Self {
        Self {
            attempt,
            claimed,
            acked,
            end: None,
            waiting: false,
            answered_at: Instant::now(),
            failing_since: None,
            spilling,
            at_work: false,
            urgent: false,
        }
    }

    pub(super) fn is_at_work(&self) -> bool {
        self.at_work
    }

    /// Whether it is known which number an event has. A later attempt learns from the server where it begins.
    pub(super) fn knows_its_place(&self) -> bool {
        self.claimed || self.attempt <= 1
    }

    /// Whether viewers see what neither the server nor the durable log has.
    pub(super) fn shows_what_waits(&self) -> bool {
        let out = self
            .failing_since
            .is_some_and(|since| since.elapsed() >= SHOW_WHAT_WAITS_AFTER);
        out && self.knows_its_place() && !self.spilling.is_in_order()
    }

    /// The newest event that the server or the durable log has.
    pub(super) fn safe(&self) -> u64 {
        self.acked.max(self.spilling.logged)
    }
}

impl RunLog {
    /// Numbers an event. Afterwards somebody must send: [`RunLog::begin_work`].
    pub(super) fn push(
        &self,
        attempt: u32,
        event: EventName,
        data: EventData,
        options: &RedisOptions,
    ) -> Result<EventId, Refused> {
        self.locked(|state| {
            state.admit(self.run_id(), attempt)?;
            Ok(state.push(attempt, event, data, options))
        })
    }

    /// Ends the stream, with an error event before the end if there is one. Afterwards somebody must send.
    pub(super) fn end(
        &self,
        attempt: u32,
        kind: TerminalKind,
        error: Option<Bytes>,
        options: &RedisOptions,
    ) -> Result<(), Refused> {
        self.locked(|state| {
            state.admit(self.run_id(), attempt)?;
            if let Some(data) = error {
                state.push(attempt, EventName::Borrowed("error"), data.into(), options);
            }
            state
                .owner
                .iter_mut()
                .for_each(|owner| owner.end = Some(kind));
            Ok(())
        })
    }

    /// Ends an owned stream as cancelled if it has no end yet. Whether this node owns it.
    pub(super) fn cancel(&self) -> bool {
        self.locked(|state| {
            state
                .owner
                .iter_mut()
                .for_each(|owner| _ = owner.end.get_or_insert(TerminalKind::Cancel));
            state.owner.is_some()
        })
    }

    /// Suspends the limit on silence until the next event. Whether this node owns the stream.
    pub(super) fn await_input(&self) -> bool {
        self.locked(|state| {
            if state.outline.status == StreamStatus::Active {
                state.outline.status = StreamStatus::AwaitingInput;
                state
                    .owner
                    .iter_mut()
                    .for_each(|owner| owner.waiting = true);
            }
            state.owner.is_some()
        })
    }

    /// Whether this node publishes for `attempt`.
    pub(super) fn publishes(&self, attempt: u32) -> bool {
        self.locked(|state| {
            state
                .owner
                .as_ref()
                .is_some_and(|owner| owner.attempt == attempt)
        })
    }

    /// Whether the end that `attempt` asked for is the stream's, or may still become it.
    pub(super) fn ended_by(&self, attempt: u32, kind: TerminalKind) -> Result<(), BridgeError> {
        self.locked(|state| match state.outline.ended() {
            None if state.owner.is_none() && state.outline.attempt > attempt => {
                Err(BridgeError::Fenced {
                    run_id: self.run_id().clone(),
                    attempt,
                    current: state.outline.attempt,
                })
            }
            Some(other) if other != kind => Err(BridgeError::Ended(self.run_id().clone())),
            _ => Ok(()),
        })
    }

    /// Whether `attempt` could claim the stream for all that is known here.
    pub(super) fn may_claim(&self, attempt: u32) -> Result<(), BridgeError> {
        self.locked(|state| match state.admit(self.run_id(), attempt) {
            Ok(()) | Err(Refused::NotOwner) => {
                state.claiming = state.claiming.max(attempt);
                Ok(())
            }
            Err(Refused::Bridge(error)) => Err(error),
        })
    }

    /// `attempt` publishes from now on, after what the server and the durable log have; `None` when the server did not say what that is.
    pub(super) fn own(&self, attempt: u32, known: Option<Outline>, logged: &LogOutline) {
        self.locked(|state| state.own(attempt, known, logged));
    }

    /// Whether the caller is to send: there may be something, and nobody does.
    pub(super) fn begin_work(&self) -> bool {
        let (begins, full) = self.locked(|state| {
            let waiting = state.outline.tail
                - state
                    .owner
                    .as_ref()
                    .map_or(state.outline.tail, |owner| owner.acked);
            let begins = state
                .owner
                .as_mut()
                .is_some_and(|owner| !std::mem::replace(&mut owner.at_work, true));
            (
                begins,
                waiting >= BATCH_EVENTS
                    || state
                        .owner
                        .as_ref()
                        .is_some_and(|owner| owner.end.is_some()),
            )
        });
        if full {
            self.urge.notify_one();
        }
        begins
    }

    /// The next thing to send; `None` ends the work.
    pub(super) fn next_append(&self) -> Option<Append> {
        self.locked(State::next_append)
    }

    /// Whether the next append should wait for more events.
    pub(super) fn may_gather(&self) -> bool {
        self.locked(|state| {
            let Some(owner) = &state.owner else {
                return false;
            };
            !owner.urgent && owner.end.is_none() && state.outline.tail - owner.acked < BATCH_EVENTS
        })
    }

    /// Takes in what the server said to `sent`. The caller rings.
    pub(super) fn settle(&self, sent: &Append, reply: Reply) {
        self.locked(|state| state.settle(sent, reply));
    }

    /// The server did not answer. The caller rings: viewers may see now what waits.
    pub(super) fn fail(&self) {
        self.locked(|state| {
            if let Some(owner) = &mut state.owner {
                owner.failing_since.get_or_insert_with(Instant::now);
            }
        });
    }

    /// Gives the work up, to be begun again.
    pub(super) fn stop_work(&self) {
        self.locked(|state| {
            state
                .owner
                .iter_mut()
                .for_each(|owner| owner.at_work = false)
        });
    }

    /// Whether nothing waits for the server, or the server is known to be out of order. Asks whoever sends to hurry.
    pub(super) fn is_settled(&self) -> bool {
        let settled = self.locked(|state| {
            let tail = state.outline.tail;
            state.owner.as_mut().is_none_or(|owner| {
                let settled = owner.acked == tail && owner.end.is_none()
                    || owner.shows_what_waits()
                    || owner.has_spilled(tail);
                owner.urgent |= !settled;
                settled
            })
        });
        if !settled {
            self.urge.notify_one();
        }
        settled
    }
}

impl State {
    fn admit(&self, run_id: &RunId, attempt: u32) -> Result<(), Refused> {
        let current = self
            .owner
            .as_ref()
            .map_or(0, |owner| owner.attempt)
            .max(self.outline.attempt);
        if attempt < current {
            return Err(Refused::Bridge(BridgeError::Fenced {
                run_id: run_id.clone(),
                attempt,
                current,
            }));
        }
        if self.outline.ended().is_some()
            || self.owner.as_ref().is_some_and(|owner| owner.end.is_some())
        {
            return Err(Refused::Bridge(BridgeError::Ended(run_id.clone())));
        }
        if self
            .owner
            .as_ref()
            .is_none_or(|owner| owner.attempt != attempt)
        {
            Err(Refused::NotOwner)
        } else {
            Ok(())
        }
    }

    fn push(
        &mut self,
        attempt: u32,
        event: EventName,
        data: EventData,
        options: &RedisOptions,
    ) -> EventId {
        let now = Instant::now();
        let id = self.outline.append(attempt);
        self.take_in(StreamEvent { id, event, data }, now);
        self.outline.status = StreamStatus::Active;
        self.changed_at = now;
        if let Some(owner) = &mut self.owner {
            owner.waiting = false;
        }
        self.keep_within(options);
        id
    }

    fn next_append(&mut self) -> Option<Append> {
        let (tail, base) = (self.outline.tail, self.base());
        let owner = self.owner.as_mut()?;
        if !owner.claimed {
            return Some(Append::claim(owner.attempt));
        }
        let begin = base.max(owner.acked + 1);
        let mut bytes = 0;
        let unsent = self
            .entries
            .iter()
            .skip_while(|entry| entry.event.id.seq < begin)
            .take(MOST_EVENTS)
            .take_while(|entry| {
                bytes += entry.event.data.len();
                bytes <= MOST_BYTES || entry.event.id.seq == begin
            });
        let events: Vec<StreamEvent> = unsent.map(|entry| entry.event.clone()).collect();
        let all = begin + events.len() as u64 > tail;
        let end = owner.end.filter(|_| all);
        let remake = begin > owner.acked + 1;
        if events.is_empty() && end.is_none() && !owner.waiting && !remake {
            owner.at_work = false;
            owner.urgent = false;
            return None;
        }
        Some(Append {
            attempt: Some(owner.attempt),
            before: Some(begin - 1),
            remake,
            events,
            waiting: owner.waiting && all,
            end,
            owed: Some(tail),
            spilled: owner.spilling.trims_up_to(),
        })
    }

    fn settle(
        &mut self,
        sent: &Append,
        Reply {
            verdict,
            outline,
            logged,
        }: Reply,
    ) {
        let Some(owner) = &mut self.owner else { return };
        let reached_end = owner.end.is_some()
            && owner.end == outline.ended()
            && outline.tail == self.outline.tail;
        owner.answered_at = Instant::now();
        owner.failing_since = None;
        match verdict {
            Verdict::Done if !owner.claimed => self.resolve(outline, &logged),
            Verdict::Done => {
                owner.acked = sent
                    .before
                    .map_or(owner.acked, |before| before + sent.events.len() as u64);
                owner.waiting &= !sent.waiting;
                self.show_from_now(sent);
                self.keep_up_with(&outline);
                if sent.end.is_some() {
                    self.outline.status = outline.status;
                    self.owner = None;
                }
            }
            Verdict::Short => owner.acked = owner.acked.min(outline.tail),
            Verdict::Ended if reached_end => {
                self.keep_up_with(&outline);
                self.outline.status = outline.status;
                self.owner = None;
            }
            Verdict::Ended => self.end_elsewhere(outline),
            // This node claimed it anew meanwhile, and goes on as the later attempt.
            Verdict::Fenced if sent.attempt < Some(owner.attempt) => {}
            Verdict::Fenced | Verdict::Conflict => self.lose(outline),
        }
    }

    /// Viewers could not see these before: what they did not read until now is not their fault.
    fn show_from_now(&mut self, sent: &Append) {
        let (Some(first), base, now) = (
            sent.events.first().map(|event| event.id.seq),
            self.base(),
            Instant::now(),
        ) else {
            return;
        };
        let index = |seq: u64| {
            usize::try_from(seq.saturating_sub(base))
                .unwrap_or(usize::MAX)
                .min(self.entries.len())
        };
        let (from, to) = (index(first), index(first + sent.events.len() as u64));
        self.entries
            .range_mut(from..to)
            .for_each(|entry| entry.at = now);
    }

    /// Viewers are told what the server still has.
    fn keep_up_with(&mut self, outline: &Outline) {
        self.outline.first = self.outline.first.max(outline.first);
        self.outline.bytes = outline.bytes;
        self.outline.attempt = self.outline.attempt.max(outline.attempt);
        while self.base() < self.outline.first && !self.entries.is_empty() {
            self.drop_oldest();
        }
    }

    /// Somebody else ended the stream: what did not arrive before never will.
    fn end_elsewhere(&mut self, outline: Outline) {
        let all = self.outline.tail;
        let shown = self.owner.take().map_or(0, |owner| {
            if owner.shows_what_waits() {
                all
            } else {
                owner.safe()
            }
        });
        self.generation += u32::from(shown > outline.tail);
        while self
            .entries
            .back()
            .is_some_and(|entry| entry.event.id.seq > outline.tail)
        {
            self.drop_newest();
        }
        self.outline.cut_after(outline.tail);
        self.adopt(outline);
    }

    /// Another attempt publishes: viewers here come back, and follow that one.
    pub(super) fn lose(&mut self, outline: Outline) {
        self.owner = None;
        self.entries.clear();
        self.bytes = 0;
        self.generation += 1;
        self.outline = outline;
    }

    /// `known` is what the server was known to have before it was asked: an append may have come between the answer and now.
    pub(super) fn observe_as_owner(&mut self, seen: Option<Outline>, known: u64) -> Observed {
        let (tail, Some(owner)) = (self.outline.tail, &mut self.owner) else {
            return Observed::Fine;
        };
        owner.answered_at = Instant::now();
        if owner.at_work || !owner.claimed {
            // Who sends finds out for itself.
            return Observed::Fine;
        }
        let seen = seen.unwrap_or_default();
        // A claim that is under way here is no other node's.
        if seen.attempt > owner.attempt.max(self.claiming) {
            self.lose(seen);
        } else if seen.ended().is_some() {
            self.end_elsewhere(seen);
        } else if seen.tail < owner.acked.min(known) && tail > 0 {
            tracing::warn!(
                kept = seen.tail,
                published = owner.acked,
                "redis lost events of a live run, they are sent again"
            );
            owner.acked = seen.tail;
            return Observed::Lost;
        }
        Observed::Fine
    }
}

#[cfg(test)]
#[path = "owner_tests.rs"]
mod tests;
