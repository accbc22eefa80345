//! Spills of a publisher: events that go to the durable log because the server is unavailable,
//! or before the server trims them.

use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::{LogBatch, StreamEvent};

use super::options::RedisOptions;
use super::protocol::Append;
use super::publisher::{MAX_APPEND_BYTES, MAX_APPEND_EVENTS, Publisher};
use super::run_log::RunLog;
use super::spill_state::SpillState;
use super::stream_head::StreamHead;
use super::stream_state::{Entry, StreamState};

/// Time from the first failed request until events are written to the durable log, and the interval
/// of these writes during an outage.
pub(super) const SPILL_INTERVAL: Duration = Duration::from_millis(250);

/// During an outage, events that were acknowledged within this time before the server's last answer
/// are logged too: viewers on other nodes may not have read them.
const UNREAD_WINDOW: Duration = Duration::from_secs(6);

/// Maximum number of pages of the server's oldest events that are copied at once.
const MAX_COPIED_PAGES: usize = 4;

/// Next step of a spill task.
#[derive(Debug)]
pub(super) enum SpillStep {
    /// Write these events.
    Write(LogBatch),
    /// Copy this many events from this one on from the server.
    Copy(u64, usize),
    /// Check again after this time.
    Wait(Duration),
    /// Stop.
    Nothing,
}

impl StreamState {
    /// Drops the oldest events while memory exceeds the limit: stored events, and unsent ones if
    /// there are too many.
    pub(super) fn trim_entries(&mut self, options: &RedisOptions) {
        let can_spill = self
            .publisher
            .as_ref()
            .is_some_and(|publisher| publisher.spilling.accepted);
        let (retention, pending_limit) =
            (options.retention_limit(), options.pending_limit(can_spill));
        while self.entries.len() > 1 && retention.is_exceeded_by(self.entries.len(), self.bytes) {
            let stored = can_spill
                && self
                    .publisher
                    .as_ref()
                    .is_some_and(|publisher| self.base() <= publisher.stored_up_to());
            if !stored && !pending_limit.is_exceeded_by(self.entries.len(), self.bytes) {
                return;
            }
            if !stored {
                self.head.first = self.base() + 1;
            }
            self.drop_oldest();
        }
    }

    pub(super) fn next_spill(&mut self, run_id: &RunId, options: &RedisOptions) -> SpillStep {
        let next = self.plan_spill(run_id, options);
        if let (SpillStep::Nothing, Some(publisher)) = (&next, &mut self.publisher) {
            publisher.spilling.writing = false;
        }
        next
    }

    fn plan_spill(&self, run_id: &RunId, options: &RedisOptions) -> SpillStep {
        let Some(publisher) = self
            .publisher
            .as_ref()
            .filter(|publisher| publisher.spilling.accepted && publisher.knows_position())
        else {
            return SpillStep::Nothing;
        };
        let head = &self.head;
        let Some(since) = publisher.failing_since else {
            let (stored_events, bytes) = (
                publisher.acked + 1 - head.first.min(publisher.acked + 1),
                head.bytes,
            );
            let is_over_limit = options
                .retention_limit()
                .is_exceeded_by(to_usize(stored_events), to_usize(bytes));
            let must_copy =
                is_over_limit && publisher.claimed && publisher.spilling.oldest < head.first;
            return if must_copy {
                SpillStep::Copy(
                    head.first,
                    (MAX_COPIED_PAGES * head.page()).min(to_usize(stored_events)),
                )
            } else {
                SpillStep::Nothing
            };
        };
        if let Some(left) = SPILL_INTERVAL
            .checked_sub(since.elapsed())
            .filter(|left| !left.is_zero())
        {
            return SpillStep::Wait(left);
        }
        let tail = head.tail;
        let begin = self.first_to_spill(publisher);
        let mut bytes = 0;
        let unlogged = self
            .entries
            .iter()
            .map(|entry| &entry.event)
            .skip_while(|event| event.id.seq < begin)
            .take(MAX_APPEND_EVENTS);
        let fitting = unlogged.take_while(|event| {
            bytes += event.data.len();
            bytes <= MAX_APPEND_BYTES || event.id.seq == begin
        });
        let batch = LogBatch {
            run_id: run_id.clone(),
            attempt: publisher.attempt,
            before: begin - 1,
            events: fitting.cloned().collect(),
            end: None,
        };
        let end = publisher
            .end
            .filter(|_| batch.tail() == tail && !publisher.spilling.ended);
        if batch.events.is_empty() && end.is_none() {
            SpillStep::Wait(SPILL_INTERVAL)
        } else {
            SpillStep::Write(LogBatch { end, ..batch })
        }
    }

    /// Returns the first event to log during an outage.
    fn first_to_spill(&self, publisher: &Publisher) -> u64 {
        // Events are acknowledged in order, so the read ones come first.
        let is_read = |entry: &Entry| {
            entry.event.id.seq <= publisher.acked
                && entry.at + UNREAD_WINDOW < publisher.answered_at
        };
        let read = self.entries.partition_point(is_read);
        (self.base() + read as u64).max(publisher.spilling.logged + 1)
    }

    /// Returns the first event that the server lacks and only the log may have.
    fn first_missing_at_server(&self) -> Option<u64> {
        let publisher = self
            .publisher
            .as_ref()
            .filter(|publisher| publisher.claimed && publisher.spilling.accepted)?;
        let from = publisher
            .acked
            .max(publisher.spilling.oldest)
            .max(publisher.spilling.missing)
            + 1;
        (from < self.base()).then_some(from)
    }
}

impl RunLog {
    /// Returns `true` if the caller must start a spill task, because there are events to write and
    /// no task is running.
    pub(super) fn begin_spill(&self, options: &RedisOptions) -> bool {
        self.locked(|state| {
            let has_work = !matches!(state.plan_spill(self.run_id(), options), SpillStep::Nothing);
            has_work
                && state.publisher.as_mut().is_some_and(|publisher| {
                    !std::mem::replace(&mut publisher.spilling.writing, true)
                })
        })
    }

    /// Records that the log has stored the events up to `tail`, and the end if `ended`.
    pub(super) fn spilled(&self, tail: u64, ended: bool) {
        self.locked(|state| {
            if let Some(publisher) = &mut state.publisher {
                publisher.spilling.failing = false;
                publisher.spilling.logged = publisher.spilling.logged.max(tail);
                publisher.spilling.ended |= ended;
            }
        });
    }

    /// Records that the server's oldest events, up to `tail`, were copied to the log.
    pub(super) fn copied(&self, tail: u64) {
        self.with_spilling(|spilling| spilling.oldest = spilling.oldest.max(tail));
    }

    /// Handles a write that the log refused because of attempt `current`. If that is later than
    /// this node's attempt, this node stops publishing and drops its unsent events.
    pub(super) fn fenced_by(&self, current: u32) {
        self.locked(|state| {
            if state
                .publisher
                .as_ref()
                .is_some_and(|publisher| publisher.attempt < current)
            {
                state.step_down(StreamHead {
                    attempt: current,
                    ..StreamHead::default()
                });
            }
        });
    }

    pub(super) fn with_spilling(&self, act: impl Fn(&mut SpillState)) {
        self.locked(|state| {
            state
                .publisher
                .iter_mut()
                .for_each(|publisher| act(&mut publisher.spilling))
        });
    }

    /// Returns the first event that must be read from the log and sent to the server before other
    /// events.
    pub(super) fn refill(&self) -> Option<u64> {
        self.locked(|state| state.first_missing_at_server())
    }

    /// Builds an append of the log's events from `from` on. `None` if there are none: the part of
    /// the stream before this node's events is then lost.
    pub(super) fn refill_with(&self, from: u64, mut events: Vec<StreamEvent>) -> Option<Append> {
        self.locked(|state| {
            let (base, tail) = (state.base(), state.head.tail);
            events.retain(|event| event.id.seq < base);
            let publisher = state.publisher.as_mut()?;
            if events.is_empty() {
                publisher.spilling.missing = base - 1;
                return None;
            }
            Some(Append {
                attempt: Some(publisher.attempt),
                before: Some(from - 1),
                rebuild: from > publisher.acked + 1,
                events,
                awaiting_input: false,
                end: None,
                published_seq: Some(tail),
                spilled: publisher.spilling.trims_up_to(),
            })
        })
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
