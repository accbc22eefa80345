//! State that the bridge shares with its viewers and its tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::limits::Limits;
use super::log::{Change, RunLog};
use super::options::InMemoryOptions;
use super::run_logs::{EndedRuns, RunLogs};
use crate::stream_bridge::{BridgeError, StreamLog};

/// State of an in-memory bridge.
pub(super) struct Shared {
    pub(super) options: InMemoryOptions,
    pub(super) limits: Limits,
    pub(super) durable: Option<Arc<dyn StreamLog>>,
    pub(super) tasks: Tasks,
    pub(super) runs: RunLogs,
    pub(super) ended: Mutex<EndedRuns>,
    pub(super) closed: Arc<AtomicBool>,
}

impl Shared {
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn ensure_open(&self) -> Result<(), BridgeError> {
        if self.is_closed() {
            Err(BridgeError::Closed)
        } else {
            Ok(())
        }
    }

    /// Returns the log of a run, unless it has expired, even if the sweep has not removed it yet.
    pub(super) fn find(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        let log = self.runs.get(run_id)?;
        if self.remove_if_expired(&log) {
            None
        } else {
            Some(log)
        }
    }

    pub(super) fn remove_if_expired(&self, log: &Arc<RunLog>) -> bool {
        let now = Instant::now();
        let expired = log.is_expired(now, &self.options);
        if expired {
            // Checked again under the map's lock: an event may have been published in the meantime.
            self.runs
                .remove_if(log, |log| log.is_expired(now, &self.options));
        }
        expired
    }

    /// Wakes the viewers of a run that has just ended, and evicts other ended runs over the budget.
    pub(super) fn on_run_ended(&self, log: Arc<RunLog>, bytes: usize) {
        log.notify(Change::Urgent);
        let evicted = self
            .ended
            .lock()
            .push(log, bytes, self.options.max_ended_bytes);
        for log in evicted {
            tracing::debug!(run_id = %log.run_id(), "evicted ended run early, the budget for ended runs is exhausted");
            self.runs.remove_if(&log, |_| true);
            log.evict_all_but_newest();
        }
    }

    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.runs
            .remove_where(|log| log.is_expired(now, &self.options));
        // Freeing a large log takes time: the lock is released first.
        let released = self.ended.lock().release();
        drop(released);
    }
}
