//! What an owner gives to the durable log: events that the server does not take for now, and those beyond what is kept of a run.

use std::sync::Arc;
use std::time::Duration;

use harness::ids::RunId;
use harness::runtime::stream_bridge::{LogBatch, StreamEvent, StreamLog, StreamLogError};
use harness::runtime::tasks::TaskKind;
use tokio::time::{Instant, sleep, timeout};

use super::inner::Inner;
use super::link::Append;
use super::log::{Entry, RunLog, State};
use super::options::RedisOptions;
use super::outline::Outline;
use super::owner::{MOST_BYTES, MOST_EVENTS, Owner};

/// An outage is one after so long without an answer; from then on what waits is written as often.
const SPILL_EVERY: Duration = Duration::from_millis(250);
/// A log that takes longer to answer is out of order, and asked again after the pause.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(500);

/// What the server took so shortly before its last answer goes to the log too: viewers elsewhere may not have read it there.
const MAYBE_UNREAD: Duration = Duration::from_secs(6);

/// Copied at once of what is oldest at the server.
const COPIED_PAGES: usize = 4;

/// An event that no run comes to.
const NEVER: u64 = 1 << 50;

/// What the durable log has of a stream, as its owner knows it.
#[derive(Debug, Default)]
pub(super) struct Spilling {
    /// There is a log that takes events of this run.
    accepted: bool,
    /// It did not answer when it was last asked.
    failing: bool,
    /// It has all from behind what the server has up to this one; 0 before it was needed.
    pub(super) logged: u64,
    /// It has the end.
    ended: bool,
    /// It has, or had, all that is older than what the server keeps up to this one.
    pub(super) oldest: u64,
    /// Events that nobody has go up to here.
    missing: u64,
    /// Somebody writes.
    at_work: bool,
}

impl Spilling {
    /// Of a stream that stands at `outline` with both.
    pub(super) fn beside(durable: bool, outline: &Outline) -> Self {
        Self {
            accepted: durable,
            oldest: outline.first.saturating_sub(1),
            ..Self::default()
        }
    }

    /// What the server need not keep for the log.
    pub(super) fn trims_up_to(&self) -> u64 {
        if self.accepted { self.oldest } else { NEVER }
    }

    /// Whether what waits for the server will be in the log.
    pub(super) fn is_in_order(&self) -> bool {
        self.accepted && !self.failing
    }
}

/// What is to be written next.
#[derive(Debug)]
enum Next {
    /// These events.
    Write(LogBatch),
    /// So many events from this one on, which the server has.
    Copy(u64, usize),
    /// Look again after a while.
    Wait(Duration),
    /// Nothing, until there is another reason.
    Nothing,
}

impl Owner {
    /// Whether the log has everything during an outage.
    pub(super) fn has_spilled(&self, tail: u64) -> bool {
        self.failing_since.is_some()
            && self.spilling.logged == tail
            && (self.end.is_none() || self.spilling.ended)
    }

    /// Whether viewers may be told the end.
    pub(super) fn shows_its_end(&self) -> bool {
        self.shows_what_waits() || self.spilling.ended
    }
}

impl State {
    /// Drops what need not be held: what the server or the log has, and the oldest if too much waits for them.
    pub(super) fn keep_within(&mut self, options: &RedisOptions) {
        let waits = self
            .owner
            .as_ref()
            .is_some_and(|owner| owner.spilling.accepted);
        let (room, most) = (options.room(), options.waiting_room(waits));
        while self.entries.len() > 1 && room.is_exceeded_by(self.entries.len(), self.bytes) {
            let safe = waits
                && self
                    .owner
                    .as_ref()
                    .is_some_and(|owner| self.base() <= owner.safe());
            if !safe && !most.is_exceeded_by(self.entries.len(), self.bytes) {
                return;
            }
            if !safe {
                self.outline.first = self.base() + 1;
            }
            self.drop_oldest();
        }
    }

    fn next_spill(&mut self, run_id: &RunId, options: &RedisOptions) -> Next {
        let next = self.wanted(run_id, options);
        if let (Next::Nothing, Some(owner)) = (&next, &mut self.owner) {
            owner.spilling.at_work = false;
        }
        next
    }

    fn wanted(&self, run_id: &RunId, options: &RedisOptions) -> Next {
        let Some(owner) = self
            .owner
            .as_ref()
            .filter(|owner| owner.spilling.accepted && owner.knows_its_place())
        else {
            return Next::Nothing;
        };
        let outline = &self.outline;
        let Some(since) = owner.failing_since else {
            let (kept, bytes) = (
                owner.acked + 1 - outline.first.min(owner.acked + 1),
                outline.bytes,
            );
            let over = options.room().is_exceeded_by(whole(kept), whole(bytes));
            let is_due = over && owner.claimed && owner.spilling.oldest < outline.first;
            return if is_due {
                Next::Copy(
                    outline.first,
                    (COPIED_PAGES * outline.page()).min(whole(kept)),
                )
            } else {
                Next::Nothing
            };
        };
        if let Some(left) = SPILL_EVERY
            .checked_sub(since.elapsed())
            .filter(|left| !left.is_zero())
        {
            return Next::Wait(left);
        }
        let tail = outline.tail;
        let begin = self.first_to_spill(owner);
        let mut bytes = 0;
        let waits = self
            .entries
            .iter()
            .map(|entry| &entry.event)
            .skip_while(|event| event.id.seq < begin)
            .take(MOST_EVENTS);
        let fit = waits.take_while(|event| {
            bytes += event.data.len();
            bytes <= MOST_BYTES || event.id.seq == begin
        });
        let batch = LogBatch {
            run_id: run_id.clone(),
            attempt: owner.attempt,
            before: begin - 1,
            events: fit.cloned().collect(),
            end: None,
        };
        let end = owner
            .end
            .filter(|_| batch.tail() == tail && !owner.spilling.ended);
        if batch.events.is_empty() && end.is_none() {
            Next::Wait(SPILL_EVERY)
        } else {
            Next::Write(LogBatch { end, ..batch })
        }
    }

    /// The first event that goes to the log in an outage.
    fn first_to_spill(&self, owner: &Owner) -> u64 {
        // What the server took is in the order in which it took it.
        let is_read = |entry: &Entry| {
            entry.event.id.seq <= owner.acked && entry.at + MAYBE_UNREAD < owner.answered_at
        };
        let read = self.entries.partition_point(is_read);
        (self.base() + read as u64).max(owner.spilling.logged + 1)
    }

    /// The first event that the server lacks and only the log may have.
    fn missing_at_the_server(&self) -> Option<u64> {
        let owner = self
            .owner
            .as_ref()
            .filter(|owner| owner.claimed && owner.spilling.accepted)?;
        let from = owner
            .acked
            .max(owner.spilling.oldest)
            .max(owner.spilling.missing)
            + 1;
        (from < self.base()).then_some(from)
    }
}

impl RunLog {
    /// Whether the caller is to write: there may be something, and nobody does.
    fn begin_spill(&self, options: &RedisOptions) -> bool {
        self.locked(|state| {
            let wanted = !matches!(state.wanted(self.run_id(), options), Next::Nothing);
            wanted
                && state
                    .owner
                    .as_mut()
                    .is_some_and(|owner| !std::mem::replace(&mut owner.spilling.at_work, true))
        })
    }

    /// The log has taken these.
    fn spilled(&self, tail: u64, ended: bool) {
        self.locked(|state| {
            if let Some(owner) = &mut state.owner {
                owner.spilling.failing = false;
                owner.spilling.logged = owner.spilling.logged.max(tail);
                owner.spilling.ended |= ended;
            }
        });
    }

    /// The log has a copy of what is oldest at the server.
    fn copied(&self, tail: u64) {
        self.with_spilling(|spilling| spilling.oldest = spilling.oldest.max(tail));
    }

    /// The log knows of attempt `current`: if that is not this node's own, what is shown here nobody will have.
    pub(super) fn fenced_by(&self, current: u32) {
        self.locked(|state| {
            if state
                .owner
                .as_ref()
                .is_some_and(|owner| owner.attempt < current)
            {
                state.lose(Outline {
                    attempt: current,
                    ..Outline::default()
                });
            }
        });
    }

    fn with_spilling(&self, act: impl Fn(&mut Spilling)) {
        self.locked(|state| {
            state
                .owner
                .iter_mut()
                .for_each(|owner| act(&mut owner.spilling))
        });
    }

    /// What is to be read from the log, and to be sent to the server before anything else.
    pub(super) fn refill(&self) -> Option<u64> {
        self.locked(|state| state.missing_at_the_server())
    }

    /// Brings what the log has from `from` on to the server; without events that part is lost.
    pub(super) fn refill_with(&self, from: u64, mut events: Vec<StreamEvent>) -> Option<Append> {
        self.locked(|state| {
            let (base, tail) = (state.base(), state.outline.tail);
            events.retain(|event| event.id.seq < base);
            let owner = state.owner.as_mut()?;
            if events.is_empty() {
                owner.spilling.missing = base - 1;
                return None;
            }
            Some(Append {
                attempt: Some(owner.attempt),
                before: Some(from - 1),
                remake: from > owner.acked + 1,
                events,
                waiting: false,
                end: None,
                owed: Some(tail),
                spilled: owner.spilling.trims_up_to(),
            })
        })
    }
}

impl Inner {
    /// Has what is to be in the durable log written there, beside everything else.
    pub(super) fn spill_for(self: &Arc<Self>, log: &Arc<RunLog>) {
        if let Some(durable) = self
            .around
            .durable
            .as_ref()
            .filter(|_| log.begin_spill(&self.around.options))
        {
            let (inner, log, durable) = (self.clone(), log.clone(), durable.clone());
            self.tasks
                .spawn(TaskKind::Finish, "stream spill", async move {
                    inner
                        .tasks
                        .token()
                        .run_until_cancelled(inner.spill_all(&log, &*durable))
                        .await;
                });
        }
    }

    async fn spill_all(&self, log: &RunLog, durable: &dyn StreamLog) {
        loop {
            match log.locked(|state| state.next_spill(log.run_id(), &self.around.options)) {
                Next::Nothing => return,
                Next::Wait(pause) => sleep(pause).await,
                Next::Write(batch) => {
                    let (tail, ended, whole) = (
                        batch.tail(),
                        batch.end.is_some(),
                        batch.events.len() < MOST_EVENTS,
                    );
                    if self.write(log, durable, batch).await {
                        log.spilled(tail, ended);
                        log.ring();
                        if whole {
                            sleep(SPILL_EVERY).await;
                        }
                    }
                }
                Next::Copy(first, count) => self.copy(log, durable, first, count).await,
            }
        }
    }

    /// What is oldest at the server, before it goes there.
    async fn copy(&self, log: &RunLog, durable: &dyn StreamLog, first: u64, count: usize) {
        let Ok(look) = self
            .around
            .link
            .look_at(log.run_id(), Some((first, count)))
            .await
        else {
            return sleep(PAUSE).await;
        };
        let events: Vec<_> = (first..)
            .zip(look.events)
            .take_while(|(seq, event)| event.id.seq == *seq)
            .map(|(_, event)| event)
            .collect();
        let Some(attempt) = events.last().map(|event| event.id.attempt) else {
            // The server lost it, which its owner will find.
            return sleep(PAUSE).await;
        };
        let attempt =
            log.locked(|state| state.owner.as_ref().map_or(attempt, |owner| owner.attempt));
        let batch = LogBatch {
            run_id: log.run_id().clone(),
            attempt,
            before: first - 1,
            events,
            end: None,
        };
        let tail = batch.tail();
        if self.write(log, durable, batch).await {
            log.copied(tail);
        }
    }

    async fn write(&self, log: &RunLog, durable: &dyn StreamLog, batch: LogBatch) -> bool {
        let Ok(_place) = self.spills.acquire().await else {
            return false;
        };
        let run_id = log.run_id();
        match timeout(ANSWER_LIMIT, durable.append(batch)).await {
            Ok(Ok(())) => return true,
            Ok(Err(StreamLogError::Store(error))) => {
                tracing::warn!(%run_id, %error, "the durable log takes no events")
            }
            Ok(Err(StreamLogError::Fenced { current, .. })) => {
                log.fenced_by(current);
                log.ring();
                return false;
            }
            Ok(Err(refused)) => {
                tracing::debug!(%run_id, %refused, "the durable log takes no events of this run");
                log.with_spilling(|spilling| spilling.accepted = false);
                log.ring();
                return false;
            }
            Err(_) => tracing::warn!(%run_id, "the durable log does not answer"),
        }
        log.with_spilling(|spilling| spilling.failing = true);
        log.ring();
        sleep(PAUSE).await;
        false
    }

    /// What the server lacks and this node no longer holds, from the durable log; nothing where that has it neither.
    pub(super) async fn refilled(&self, log: &RunLog, from: u64) -> Option<Append> {
        let durable = self.around.durable.as_ref()?;
        let began = Instant::now();
        loop {
            match durable.read(log.run_id(), from, MOST_EVENTS).await {
                Ok(page) => return log.refill_with(from, page.events),
                Err(error) if began.elapsed() >= self.around.options.loss_patience => {
                    tracing::warn!(run_id = %log.run_id(), %error, "a part of a stream cannot be read from the durable log");
                    return log.refill_with(from, Vec::new());
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }
}

fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
