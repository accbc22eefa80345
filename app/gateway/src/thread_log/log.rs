//! Events that a log holds in memory, bounded by number and bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use chrono::{DateTime, Utc};
use harness::ids::RunId;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::event::{Draft, Identity, LogEvent};
use super::tree::TreeNode;

/// Number of events that are compared before a binary search.
const NEWEST: usize = 16;

/// Limits of the events that the log of one thread holds in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Maximum number of events.
    pub events: usize,
    /// Maximum number of bytes of their JSON. The newest event is always held.
    pub bytes: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            events: 10_000,
            bytes: 32 * 1024 * 1024,
        }
    }
}

/// Log of one thread.
#[derive(Debug)]
pub(super) struct ThreadLog {
    limits: LogLimits,
    state: Mutex<LogState>,
    /// Number of changes so far.
    changes: watch::Sender<u64>,
    /// Number of readers.
    readers: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct LogState {
    events: VecDeque<HeldEvent>,
    /// Memory of the next small events.
    block: BytesMut,
    /// `true` if the readers were not notified of the newest events.
    is_unpublished: bool,
    bytes: usize,
    /// Position of the last event that was dropped because of the limits.
    evicted: u64,
    /// Position up to which events were no longer available when they were read.
    unavailable: u64,
    tree: Option<TreeNode>,
    /// Creation time of the oldest run in the log.
    oldest_run: Option<DateTime<Utc>>,
    /// `true` once the log has all events that were published before it was opened.
    is_complete: bool,
    /// `true` after the last event: the server stops, or no reader is left.
    is_closed: bool,
}

#[derive(Debug)]
struct HeldEvent {
    run: Arc<RunId>,
    event: LogEvent,
}

impl LogState {
    /// Returns the index of the first event after a position. Most readers have read all events but
    /// the newest.
    fn index_after(&self, position: u64) -> usize {
        let is_read = |held: &HeldEvent| held.event.seq <= position;
        let newest = self.events.iter().rev().take(NEWEST);
        match newest.enumerate().find(|(_, held)| is_read(held)) {
            Some((unread, _)) => self.events.len() - unread,
            None => self.events.partition_point(is_read),
        }
    }
}

/// Events from a position on.
#[derive(Debug)]
pub(super) struct Page {
    /// Events in order.
    pub(super) events: Vec<LogEvent>,
    /// `true` if more events follow at once.
    pub(super) has_more: bool,
}

/// Positions that a log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// Position of the last event that was dropped because of the limits.
    pub(super) evicted: u64,
    /// Position up to which no event is available.
    pub(super) unavailable: u64,
    pub(super) is_complete: bool,
    pub(super) is_closed: bool,
}

impl ThreadLog {
    pub(super) fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            state: Mutex::default(),
            changes: watch::Sender::new(0),
            readers: watch::Sender::new(0),
        }
    }

    /// Adds events of a run that was created at `created_at`. Readers are not notified of them
    /// before [`ThreadLog::publish`].
    pub(super) fn add(
        &self,
        run: &Arc<RunId>,
        created_at: DateTime<Utc>,
        drafts: impl IntoIterator<Item = (Draft, Identity)>,
    ) {
        let mut state = self.state.lock();
        let state = &mut *state;
        for (draft, identity) in drafts {
            state.oldest_run.get_or_insert(created_at);
            if let Some(change) = &draft.change {
                TreeNode::apply(&mut state.tree, &draft.namespace, change);
            }
            let event = LogEvent::new(draft, &identity, &mut state.block);
            state.bytes += event.json.len();
            state.is_unpublished = true;
            let run = run.clone();
            state.events.push_back(HeldEvent { run, event });
        }
        while state.events.len() > 1
            && (state.events.len() > self.limits.events || state.bytes > self.limits.bytes)
            && let Some(dropped) = state.events.pop_front()
        {
            state.bytes -= dropped.event.json.len();
            state.evicted = dropped.event.seq;
        }
    }

    /// Notifies the readers of the events that were added.
    pub(super) fn publish(&self) {
        let is_unpublished = std::mem::take(&mut self.state.lock().is_unpublished);
        if is_unpublished {
            self.notify();
        }
    }

    /// Removes the events of a run that was rolled back.
    pub(super) fn remove_run(&self, run: &RunId) {
        let mut state = self.state.lock();
        let mut removed = 0;
        state.events.retain(|held| {
            let is_removed = *held.run == *run;
            removed += if is_removed { held.event.json.len() } else { 0 };
            !is_removed
        });
        state.bytes -= removed;
        state.tree = None;
    }

    /// Records that events up to a position are no longer available.
    pub(super) fn set_unavailable(&self, position: u64) {
        let mut state = self.state.lock();
        state.unavailable = state.unavailable.max(position);
    }

    /// Records that the log has all events that were published before it was opened.
    pub(super) fn set_complete(&self) {
        let was_complete = std::mem::replace(&mut self.state.lock().is_complete, true);
        if !was_complete {
            self.notify();
        }
    }

    /// Ends the log for its readers.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.notify();
    }

    fn notify(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns the events after a position, up to `max_bytes`, but at least one.
    pub(super) fn after(&self, position: u64, max_bytes: usize) -> Page {
        let state = self.state.lock();
        let from = state.index_after(position);
        let (mut events, mut bytes, mut has_more) = (Vec::new(), 0, false);
        for held in state.events.range(from..) {
            has_more = bytes >= max_bytes;
            if has_more {
                break;
            }
            bytes += held.event.json.len();
            events.push(held.event.clone());
        }
        Page { events, has_more }
    }

    /// Returns the positions that the log holds.
    pub(super) fn held(&self) -> Held {
        let state = self.state.lock();
        Held {
            evicted: state.evicted,
            unavailable: state.unavailable,
            is_complete: state.is_complete,
            is_closed: state.is_closed,
        }
    }

    /// Reports whether no event is held.
    pub(super) fn is_empty(&self) -> bool {
        self.state.lock().events.is_empty()
    }

    /// Returns the position of the last event that is held; 0 without events.
    pub(super) fn last(&self) -> u64 {
        let state = self.state.lock();
        state.events.back().map_or(0, |held| held.event.seq)
    }

    /// Returns the agents of the newest run.
    pub(super) fn tree(&self) -> Option<TreeNode> {
        self.state.lock().tree.clone()
    }

    /// Reports whether the log has runs of an earlier thread with the same id: of a deleted one, if
    /// the present one was created at `created_at` or does not exist.
    pub(super) fn is_of_deleted_thread(&self, created_at: Option<DateTime<Utc>>) -> bool {
        let oldest = self.state.lock().oldest_run;
        oldest.is_some_and(|oldest| created_at.is_none_or(|created_at| oldest < created_at))
    }

    /// Returns a receiver of changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the number of readers, which can be awaited.
    pub(super) fn readers(&self) -> &watch::Sender<usize> {
        &self.readers
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
