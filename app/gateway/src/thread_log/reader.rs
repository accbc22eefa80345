//! A reader of a thread's log: its position, and the right to be notified.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::event::LogEvent;
use super::log::ThreadLog;
use super::tree::TreeNode;

/// Minimum time between two reads of new events. The events of a burst are sent together: a write
/// to a connection costs more than all else that an event needs. The first event after a silence is
/// not delayed.
const BURST: Duration = Duration::from_millis(2);

/// Reader of a log. It never delays the log: events that it does not read in time are dropped.
#[derive(Debug)]
pub(crate) struct LogReader {
    log: Arc<ThreadLog>,
    changes: watch::Receiver<u64>,
    /// Position of the last event that was read.
    position: u64,
    /// `true` after the first event. Before it, the reader begins at the oldest held event.
    has_begun: bool,
    /// Earliest time of the next read.
    next_read: Instant,
}

/// The log has dropped events that the reader did not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the reader is too slow: events after {position} are no longer available")]
pub(crate) struct Lagging {
    position: u64,
}

impl LogReader {
    /// Creates a reader of the events after `position`.
    pub(super) fn new(log: Arc<ThreadLog>, position: u64) -> Self {
        log.readers().send_modify(|readers| *readers += 1);
        let mut changes = log.changes();
        // The log may have events.
        changes.mark_changed();
        Self {
            changes,
            log,
            position,
            has_begun: false,
            next_read: Instant::now(),
        }
    }

    /// Reads the next events, up to `max_bytes`, but at least one. Returns an empty list if there
    /// are none yet.
    pub(crate) fn read(&mut self, max_bytes: usize) -> Result<Vec<LogEvent>, Lagging> {
        self.changes.mark_unchanged();
        if self.has_begun && self.log.held().evicted > self.position {
            let position = self.position;
            return Err(Lagging { position });
        }
        let page = self.log.after(self.position, max_bytes);
        if let Some(last) = page.events.last() {
            self.position = last.seq;
            self.has_begun = true;
            if !page.has_more {
                self.next_read = Instant::now() + BURST;
            }
        }
        // The end of the log is a change that must not be missed.
        if page.has_more || self.log.held().is_closed {
            self.changes.mark_changed();
        }
        Ok(page.events)
    }

    /// Waits until events may be read. Returns `false` if the log has ended. It is cancel-safe.
    pub(crate) async fn changed(&mut self) -> bool {
        if self.next_read > Instant::now() {
            sleep_until(self.next_read).await;
        }
        let is_open = self.changes.changed().await.is_ok();
        is_open && !self.log.held().is_closed
    }

    /// Waits until the log has all events that were published before it was opened, for at most
    /// `timeout`.
    pub(crate) async fn wait_until_complete(&mut self, timeout: Duration) {
        let log = self.log.clone();
        let mut changes = log.changes();
        let complete = changes.wait_for(|_| {
            let held = log.held();
            held.is_complete || held.is_closed
        });
        // Without the rest, the reader gets it as it arrives.
        let _timed_out = tokio::time::timeout(timeout, complete).await;
    }

    /// Returns held events up to the reader's position, up to `max_bytes`.
    pub(crate) fn replay(&self, after: u64, max_bytes: usize) -> (Vec<LogEvent>, bool) {
        let mut page = self.log.after(after, max_bytes);
        let behind = page
            .events
            .partition_point(|event| event.seq <= self.position);
        let is_whole = behind < page.events.len() || !page.has_more;
        page.events.truncate(behind);
        (page.events, is_whole)
    }

    /// Returns the first position that is available, if events after `since` are not.
    pub(crate) fn gap_after(&self, since: u64) -> Option<u64> {
        let held = self.log.held();
        let missing = held.evicted.max(held.unavailable);
        (since < missing).then_some(missing + 1)
    }

    /// Returns the agents of the newest run; `None` if no run was read.
    pub(crate) fn tree(&self) -> Option<TreeNode> {
        self.log.tree()
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        self.log
            .readers()
            .send_modify(|readers| *readers = readers.saturating_sub(1));
    }
}
