//! The runs that this node publishes or follows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use parking_lot::RwLock;

use super::run_log::RunLog;
use super::stream_head::StreamHead;

/// The logs of this node, and their total size in bytes.
#[derive(Debug)]
pub(super) struct RunLogs {
    logs: RwLock<HashMap<RunId, Arc<RunLog>>>,
    total_bytes: Arc<AtomicUsize>,
    /// `true` if there is a durable log in addition to the server.
    durable: bool,
    /// Runs the notification of viewers.
    tasks: Tasks,
}

impl RunLogs {
    pub(super) fn new(durable: bool, tasks: Tasks) -> Self {
        Self {
            logs: RwLock::default(),
            total_bytes: Arc::default(),
            durable,
            tasks,
        }
    }

    pub(super) fn get(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        self.logs.read().get(run_id).cloned()
    }

    /// Returns the log of a run, and `true` if it is new. A new log starts at `head`.
    pub(super) fn open(
        &self,
        run_id: &RunId,
        head: impl FnOnce() -> StreamHead,
    ) -> (Arc<RunLog>, bool) {
        if let Some(log) = self.get(run_id) {
            return (log, false);
        }
        let mut new = false;
        let mut logs = self.logs.write();
        let log = logs.entry(run_id.clone()).or_insert_with(|| {
            new = true;
            self.detached(run_id, head())
        });
        (log.clone(), new)
    }

    /// Creates a log that is not registered: only its viewers own it, and it gets no new events.
    pub(super) fn detached(&self, run_id: &RunId, head: StreamHead) -> Arc<RunLog> {
        Arc::new(RunLog::new(
            run_id.clone(),
            head,
            self.total_bytes.clone(),
            self.durable,
            self.tasks.clone(),
        ))
    }

    pub(super) fn all(&self) -> Vec<Arc<RunLog>> {
        self.logs.read().values().cloned().collect()
    }

    /// Registers a log that has just become the publisher's, even if it was removed in the
    /// meantime.
    pub(super) fn insert(&self, log: &Arc<RunLog>) {
        self.logs.write().insert(log.run_id().clone(), log.clone());
    }

    /// Removes exactly this log, unless this node publishes it. Viewers keep their reference.
    pub(super) fn remove(&self, log: &Arc<RunLog>) {
        let mut logs = self.logs.write();
        if logs
            .get(log.run_id())
            .is_some_and(|found| Arc::ptr_eq(found, log))
            && !log.is_publisher()
        {
            logs.remove(log.run_id());
        }
    }

    /// Removes logs that are neither published nor viewed.
    pub(super) fn remove_unused(&self) {
        self.logs
            .write()
            .retain(|_, log| Arc::strong_count(log) > 1 || log.is_publisher());
    }

    /// Removes all logs and notifies their viewers.
    pub(super) fn clear(&self) {
        let logs = std::mem::take(&mut *self.logs.write());
        logs.values().for_each(|log| log.notify_viewers());
    }

    /// Evicts events until all logs together are below `budget`: first events that the server has,
    /// then the oldest unsent ones.
    pub(super) fn evict_to(&self, budget: usize) {
        let total_bytes = self.total_bytes.load(Ordering::Relaxed);
        if total_bytes <= budget {
            return;
        }
        // Evicts to well below the budget, so that this does not happen for every event.
        let mut excess = total_bytes - budget / 4 * 3;
        let logs = self.all();
        for all in [false, true] {
            for log in &logs {
                if excess > 0 {
                    excess = excess.saturating_sub(log.evict(excess, all));
                }
            }
            if self.total_bytes.load(Ordering::Relaxed) <= budget {
                return;
            }
        }
    }
}
