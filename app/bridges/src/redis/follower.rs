//! Follower side of a log: copies another node's run from the server, and from the durable log if
//! that has more events.

use std::time::Duration;

use deerflow_runtime::stream_bridge::{EventId, LogPage, StreamEvent, StreamStatus};
use tokio::time::Instant;

use super::options::RedisOptions;
use super::poll::PollOutcome;
use super::presence::Presence;
use super::protocol::StreamSnapshot;
use super::run_log::RunLog;
use super::stream_head::StreamHead;
use super::stream_state::{BATCH_EVENTS, StreamState};

/// Maximum number of events that a node caches of a followed run, for viewers that keep up.
const MAX_FOLLOWED_EVENTS: usize = 256;
const MAX_FOLLOWED_BYTES: usize = 512 * 1024;
/// Time without a new event after which the durable log is read, once. Shorter than the time after
/// which a viewer reads the run's end from the store.
const SILENCE_BEFORE_LOG_READ: Duration = Duration::from_secs(2);

impl RunLog {
    /// Returns the event after which the durable log must be read; `None` if it need not be read.
    /// It must be read if the server has fewer events than this node has seen, is unreachable, or
    /// had no new event for so long that the last events may be in the log. The caller must read
    /// the log, then call [`RunLog::observe_logged`]; until then this returns `None`.
    pub(super) fn needs_log_read(&self, snapshot: Option<&StreamSnapshot>) -> Option<EventId> {
        self.locked(|state| {
            if state.publisher.is_some() || !state.durable_log.may_begin() {
                return None;
            }
            let head = snapshot
                .filter(|snapshot| snapshot.complete)
                .and_then(|snapshot| snapshot.head.as_ref());
            let short = head.is_none_or(|head| head.tail < state.head.tail);
            let silent =
                head.is_some_and(|head| head.tail == state.head.tail && head.ended().is_none());
            let must_read = short
                || silent
                    && !state.durable_log.is_read()
                    && state.changed_at.elapsed() >= SILENCE_BEFORE_LOG_READ;
            must_read.then(|| {
                state.durable_log = state.durable_log.begun();
                state.head.newest()
            })
        })
    }

    /// Restarts the log at `head`, because the durable log has an event of another attempt at the
    /// position of `seen`. The caller notifies viewers.
    pub(super) fn start_over_after(&self, seen: EventId, head: StreamHead) {
        self.locked(|state| {
            state.durable_log = state.durable_log.ended();
            if state.publisher.is_none() && state.head.newest() == seen {
                state.start_over(head);
            }
        });
    }

    /// Applies the page that was read from the durable log, starting at `seen` or after it; `None`
    /// if the log did not answer. The caller notifies viewers.
    pub(super) fn observe_logged(&self, seen: EventId, page: Option<LogPage>) -> PollOutcome {
        self.locked(|state| {
            state.durable_log = state.durable_log.ended();
            let Some(LogPage { mut events, end }) = page else {
                return PollOutcome::UpToDate;
            };
            if state.publisher.is_some() || state.head.newest() != seen {
                return PollOutcome::UpToDate;
            }
            let full = events.len() >= BATCH_EVENTS;
            let has_it = end.is_some() || !events.is_empty();
            events.retain(|event| event.id.seq > seen.seq);
            state.durable_log = state.durable_log.completed();
            if has_it {
                state.presence = state.presence.found_in_log();
            }
            let last = seen.seq + events.len() as u64;
            if !events.is_empty() {
                state.follow(events, Instant::now());
            }
            if let Some(kind) = end.filter(|_| state.head.tail == last) {
                state.head.status = StreamStatus::Ended(kind);
            }
            if full {
                PollOutcome::More
            } else {
                PollOutcome::UpToDate
            }
        })
    }
}

impl StreamState {
    /// Discards the history after the stream was lost and a later attempt continued from the
    /// remaining events. Viewers must reconnect.
    fn start_over(&mut self, head: StreamHead) {
        self.generation += 1;
        self.entries.clear();
        self.bytes = 0;
        self.head = head;
    }

    /// Appends the events that directly continue the log.
    fn follow(&mut self, events: Vec<StreamEvent>, now: Instant) {
        self.changed_at = now;
        self.durable_log = self.durable_log.stream_changed();
        for event in events {
            if event.id.seq == self.head.tail + 1 {
                self.head.append(event.id.attempt);
                self.push_entry(event, now);
            }
        }
        while self.entries.len() > MAX_FOLLOWED_EVENTS
            || (self.bytes > MAX_FOLLOWED_BYTES && self.entries.len() > 1)
        {
            self.drop_oldest();
        }
    }

    pub(super) fn observe_as_follower(
        &mut self,
        snapshot: StreamSnapshot,
        count: usize,
        options: &RedisOptions,
    ) -> PollOutcome {
        let now = Instant::now();
        let Some(head) = snapshot
            .head
            .filter(|head| snapshot.complete && head.tail >= self.head.tail)
        else {
            // The publisher may rebuild the stream. If it does not do so in time, viewers get a
            // gap.
            self.presence = self.presence.missed(now, options.loss_timeout);
            return PollOutcome::UpToDate;
        };
        self.presence = Presence::Present;
        if head == self.head {
            return PollOutcome::UpToDate;
        }
        if !head.continues(&self.head) {
            self.start_over(head);
            return PollOutcome::More;
        }
        let full = snapshot.events.len() >= count;
        self.follow(snapshot.events, now);
        if full && self.head.tail < head.tail {
            return PollOutcome::More;
        }
        self.adopt(head);
        PollOutcome::UpToDate
    }
}

#[cfg(test)]
#[path = "follower_tests.rs"]
mod tests;
