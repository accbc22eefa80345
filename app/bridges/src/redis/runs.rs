//! Which runs this node publishes or follows.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use harness::ids::RunId;
use harness::runtime::tasks::Tasks;
use parking_lot::RwLock;

use super::log::RunLog;
use super::outline::Outline;

/// The logs of this node, and how many bytes they hold together.
#[derive(Debug)]
pub(super) struct Runs {
    logs: RwLock<HashMap<RunId, Arc<RunLog>>>,
    held: Arc<AtomicUsize>,
    /// There is a durable log beside the server.
    durable: bool,
    /// Where viewers are told of changes.
    tasks: Tasks,
}

impl Runs {
    pub(super) fn beside(durable: bool, tasks: Tasks) -> Self {
        Self {
            logs: RwLock::default(),
            held: Arc::default(),
            durable,
            tasks,
        }
    }

    pub(super) fn get(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        self.logs.read().get(run_id).cloned()
    }

    /// The log of a run; a new one begins at `outline`. Whether it is new.
    pub(super) fn open(
        &self,
        run_id: &RunId,
        outline: impl FnOnce() -> Outline,
    ) -> (Arc<RunLog>, bool) {
        if let Some(log) = self.get(run_id) {
            return (log, false);
        }
        let mut new = false;
        let mut logs = self.logs.write();
        let log = logs.entry(run_id.clone()).or_insert_with(|| {
            new = true;
            self.unlisted(run_id, outline())
        });
        (log.clone(), new)
    }

    /// A log that only its viewers know: nothing more comes to it.
    pub(super) fn unlisted(&self, run_id: &RunId, outline: Outline) -> Arc<RunLog> {
        Arc::new(RunLog::new(
            run_id.clone(),
            outline,
            self.held.clone(),
            self.durable,
            self.tasks.clone(),
        ))
    }

    pub(super) fn all(&self) -> Vec<Arc<RunLog>> {
        self.logs.read().values().cloned().collect()
    }

    /// Knows this log, which has just become owned, even if it was to be forgotten meanwhile.
    pub(super) fn keep(&self, log: &Arc<RunLog>) {
        self.logs.write().insert(log.run_id().clone(), log.clone());
    }

    /// Forgets this very log unless it is owned. Its viewers keep it.
    pub(super) fn forget(&self, log: &Arc<RunLog>) {
        let mut logs = self.logs.write();
        if logs
            .get(log.run_id())
            .is_some_and(|found| Arc::ptr_eq(found, log))
            && !log.is_owned()
        {
            logs.remove(log.run_id());
        }
    }

    /// Forgets logs that are neither owned nor viewed.
    pub(super) fn forget_unused(&self) {
        self.logs
            .write()
            .retain(|_, log| Arc::strong_count(log) > 1 || log.is_owned());
    }

    /// Forgets all, and wakes every viewer.
    pub(super) fn clear(&self) {
        let logs = std::mem::take(&mut *self.logs.write());
        logs.values().for_each(|log| log.ring());
    }

    /// Keeps what all logs hold below `budget`: what the server has goes first, then, of the longest outage, the oldest events.
    pub(super) fn keep_within(&self, budget: usize) {
        let held = self.held.load(Ordering::Relaxed);
        if held <= budget {
            return;
        }
        // To well below it, so that this is not done for every event.
        let mut excess = held - budget / 4 * 3;
        let logs = self.all();
        for all in [false, true] {
            for log in &logs {
                if excess > 0 {
                    excess = excess.saturating_sub(log.release(excess, all));
                }
            }
            if self.held.load(Ordering::Relaxed) <= budget {
                return;
            }
        }
    }
}
