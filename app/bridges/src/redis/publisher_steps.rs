//! Steps of a stream that this node publishes: numbers events, builds appends, and applies replies
//! and poll results.

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, StreamEvent, StreamStatus,
};
use tokio::time::Instant;

use super::options::RedisOptions;
use super::poll::PollOutcome;
use super::protocol::{Append, AppendOutcome, Reply};
use super::publisher::{MAX_APPEND_BYTES, MAX_APPEND_EVENTS, PushRefusal};
use super::stream_head::StreamHead;
use super::stream_state::StreamState;

impl StreamState {
    pub(super) fn admit(&self, run_id: &RunId, attempt: u32) -> Result<(), PushRefusal> {
        let current = self
            .publisher
            .as_ref()
            .map_or(0, |publisher| publisher.attempt)
            .max(self.head.attempt);
        if attempt < current {
            return Err(PushRefusal::Bridge(BridgeError::Fenced {
                run_id: run_id.clone(),
                attempt,
                current,
            }));
        }
        if self.head.ended().is_some()
            || self
                .publisher
                .as_ref()
                .is_some_and(|publisher| publisher.end.is_some())
        {
            return Err(PushRefusal::Bridge(BridgeError::Ended(run_id.clone())));
        }
        if self
            .publisher
            .as_ref()
            .is_none_or(|publisher| publisher.attempt != attempt)
        {
            Err(PushRefusal::NotPublisher)
        } else {
            Ok(())
        }
    }

    pub(super) fn push(
        &mut self,
        attempt: u32,
        event: EventName,
        data: EventData,
        options: &RedisOptions,
    ) -> EventId {
        let now = Instant::now();
        let id = self.head.append(attempt);
        self.push_entry(StreamEvent { id, event, data }, now);
        self.head.status = StreamStatus::Active;
        self.changed_at = now;
        if let Some(publisher) = &mut self.publisher {
            publisher.awaiting_input = false;
        }
        self.trim_entries(options);
        id
    }

    pub(super) fn next_append(&mut self) -> Option<Append> {
        let (tail, base) = (self.head.tail, self.base());
        let publisher = self.publisher.as_mut()?;
        if !publisher.claimed {
            return Some(Append::claim(publisher.attempt));
        }
        let begin = base.max(publisher.acked + 1);
        let mut bytes = 0;
        let unsent = self
            .entries
            .iter()
            .skip_while(|entry| entry.event.id.seq < begin)
            .take(MAX_APPEND_EVENTS)
            .take_while(|entry| {
                bytes += entry.event.data.len();
                bytes <= MAX_APPEND_BYTES || entry.event.id.seq == begin
            });
        let events: Vec<StreamEvent> = unsent.map(|entry| entry.event.clone()).collect();
        let all = begin + events.len() as u64 > tail;
        let end = publisher.end.filter(|_| all);
        let rebuild = begin > publisher.acked + 1;
        if events.is_empty() && end.is_none() && !publisher.awaiting_input && !rebuild {
            publisher.sending = false;
            publisher.urgent = false;
            return None;
        }
        Some(Append {
            attempt: Some(publisher.attempt),
            before: Some(begin - 1),
            rebuild,
            events,
            awaiting_input: publisher.awaiting_input && all,
            end,
            published_seq: Some(tail),
            spilled: publisher.spilling.trims_up_to(),
        })
    }

    pub(super) fn apply_reply(
        &mut self,
        sent: &Append,
        Reply {
            outcome,
            head,
            logged,
        }: Reply,
    ) {
        let Some(publisher) = &mut self.publisher else {
            return;
        };
        let reached_end =
            publisher.end.is_some() && publisher.end == head.ended() && head.tail == self.head.tail;
        publisher.answered_at = Instant::now();
        publisher.failing_since = None;
        match outcome {
            AppendOutcome::Stored if !publisher.claimed => self.resolve(head, &logged),
            AppendOutcome::Stored => {
                publisher.acked = sent
                    .before
                    .map_or(publisher.acked, |before| before + sent.events.len() as u64);
                publisher.awaiting_input &= !sent.awaiting_input;
                self.reset_visible_since(sent);
                self.apply_trim(&head);
                if sent.end.is_some() {
                    self.head.status = head.status;
                    self.publisher = None;
                }
            }
            AppendOutcome::Behind => publisher.acked = publisher.acked.min(head.tail),
            AppendOutcome::Ended if reached_end => {
                self.apply_trim(&head);
                self.head.status = head.status;
                self.publisher = None;
            }
            AppendOutcome::Ended => self.apply_remote_end(head),
            // This node claimed the stream again in the meantime, and continues as the later
            // attempt.
            AppendOutcome::Fenced if sent.attempt < Some(publisher.attempt) => {}
            AppendOutcome::Fenced | AppendOutcome::Conflict => self.step_down(head),
        }
    }

    /// Restarts the stall timer of acknowledged events: viewers could not read them before.
    fn reset_visible_since(&mut self, sent: &Append) {
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

    /// Drops the events that the server has trimmed.
    fn apply_trim(&mut self, head: &StreamHead) {
        self.head.first = self.head.first.max(head.first);
        self.head.bytes = head.bytes;
        self.head.attempt = self.head.attempt.max(head.attempt);
        while self.base() < self.head.first && !self.entries.is_empty() {
            self.drop_oldest();
        }
    }

    /// Applies an end that another node wrote: unsent events are dropped.
    fn apply_remote_end(&mut self, head: StreamHead) {
        let all = self.head.tail;
        let visible = self.publisher.take().map_or(0, |publisher| {
            if publisher.exposes_unsent() {
                all
            } else {
                publisher.stored_up_to()
            }
        });
        self.generation += u32::from(visible > head.tail);
        while self
            .entries
            .back()
            .is_some_and(|entry| entry.event.id.seq > head.tail)
        {
            self.drop_newest();
        }
        self.head.cut_after(head.tail);
        self.adopt(head);
    }

    /// Stops publishing because another attempt publishes. Viewers must reconnect and follow that
    /// attempt.
    pub(super) fn step_down(&mut self, head: StreamHead) {
        self.publisher = None;
        self.entries.clear();
        self.bytes = 0;
        self.generation += 1;
        self.head = head;
    }

    /// Compares the stream with a poll result. `known` is the newest event that the server had
    /// acknowledged when the poll was sent; later events may have been acknowledged since.
    pub(super) fn observe_as_publisher(
        &mut self,
        seen: Option<StreamHead>,
        known: u64,
    ) -> PollOutcome {
        let (tail, Some(publisher)) = (self.head.tail, &mut self.publisher) else {
            return PollOutcome::UpToDate;
        };
        publisher.answered_at = Instant::now();
        if publisher.sending || !publisher.claimed {
            // The running sender detects lost events by its own requests.
            return PollOutcome::UpToDate;
        }
        let seen = seen.unwrap_or_default();
        // A stream whose attempt is that of a claim in flight is still this node's.
        if seen.attempt > publisher.attempt.max(self.claiming) {
            self.step_down(seen);
        } else if seen.ended().is_some() {
            self.apply_remote_end(seen);
        } else if seen.tail < publisher.acked.min(known) && tail > 0 {
            tracing::warn!(
                stored = seen.tail,
                published = publisher.acked,
                "redis lost events of a live run, sending them again"
            );
            publisher.acked = seen.tail;
            return PollOutcome::Lost;
        }
        PollOutcome::UpToDate
    }
}

#[cfg(test)]
#[path = "publisher_steps_tests.rs"]
mod tests;
