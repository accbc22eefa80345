//! Event logs: a sharded map from run to log, and the ended runs in the order of their end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::log::{Change, RunLog};

const SHARDS: usize = 16;

type Shard = RwLock<HashMap<RunId, Arc<RunLog>>>;

/// Event logs of all runs. Lock order: shard, then log.
#[derive(Debug)]
pub(super) struct RunLogs {
    shards: [Shard; SHARDS],
    /// Runs the notification of viewers.
    tasks: Tasks,
}

impl RunLogs {
    /// Creates an empty map.
    pub(super) fn new(tasks: Tasks) -> Self {
        Self {
            shards: Default::default(),
            tasks,
        }
    }

    /// Applies `act` to a run's log, which is created if missing. The run cannot be removed during
    /// the call.
    pub(super) fn with_open<T>(&self, run_id: &RunId, act: impl FnOnce(&Arc<RunLog>) -> T) -> T {
        let shard = self.shard(run_id);
        if let Some(log) = shard.read().get(run_id) {
            return act(log);
        }
        let mut logs = shard.write();
        logs.entry(run_id.clone())
            .or_insert_with(|| Arc::new(RunLog::new(run_id.clone(), self.tasks.clone())));
        let logs = RwLockWriteGuard::downgrade(logs);
        act(&logs[run_id])
    }

    /// Returns the log of a run.
    pub(super) fn get(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        self.shard(run_id).read().get(run_id).cloned()
    }

    /// Removes exactly this log if it is still in the map and `is_expired` returns `true`. Notifies
    /// its viewers.
    pub(super) fn remove_if(&self, log: &Arc<RunLog>, is_expired: impl FnOnce(&RunLog) -> bool) {
        let mut logs = self.shard(log.run_id()).write();
        if logs
            .get(log.run_id())
            .is_some_and(|current| Arc::ptr_eq(current, log))
            && is_expired(log)
        {
            logs.remove(log.run_id());
            log.retire();
            drop(logs);
            log.notify(Change::Urgent);
        }
    }

    /// Removes every log for which `is_expired` returns `true`. Notifies their viewers.
    pub(super) fn remove_where(&self, is_expired: impl Fn(&RunLog) -> bool) {
        for shard in &self.shards {
            let forgotten: Vec<_> = shard
                .write()
                .extract_if(|_, log| is_expired(log))
                .map(|(_, log)| log)
                .inspect(|log| log.retire())
                .collect();
            for log in forgotten {
                log.notify(Change::Urgent);
            }
        }
    }

    /// Removes all logs and wakes every viewer.
    pub(super) fn clear(&self) {
        self.remove_where(|_| true);
    }

    fn shard(&self, run_id: &RunId) -> &Shard {
        let hash = run_id.as_str().bytes().fold(0_usize, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(usize::from(byte))
        });
        &self.shards[hash % SHARDS]
    }
}

/// Logs of ended runs that are still in memory, the earliest end first, within a budget of bytes.
#[derive(Debug, Default)]
pub(super) struct EndedRuns {
    logs: VecDeque<(Arc<RunLog>, usize)>,
    bytes: usize,
}

impl EndedRuns {
    /// Adds a log that ended with `bytes`, and returns the logs to evict to stay within `budget`:
    /// never the newest.
    pub(super) fn push(
        &mut self,
        log: Arc<RunLog>,
        bytes: usize,
        budget: usize,
    ) -> Vec<Arc<RunLog>> {
        self.logs.push_back((log, bytes));
        self.bytes += bytes;
        let mut evicted = Vec::new();
        while self.bytes > budget && self.logs.len() > 1 {
            if let Some((log, bytes)) = self.logs.pop_front() {
                self.bytes -= bytes;
                evicted.push(log);
            }
        }
        evicted
    }

    /// Returns the logs that neither the map nor a viewer references, for the caller to drop
    /// outside of any lock.
    pub(super) fn release(&mut self) -> Vec<Arc<RunLog>> {
        let (referenced, released): (VecDeque<_>, VecDeque<_>) = self
            .logs
            .drain(..)
            .partition(|(log, _)| Arc::strong_count(log) > 1);
        self.logs = referenced;
        self.bytes -= released.iter().map(|(_, bytes)| bytes).sum::<usize>();
        released.into_iter().map(|(log, _)| log).collect()
    }

    /// Returns the bytes of the counted logs.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
