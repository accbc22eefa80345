//! Which runs are known: a sharded map from run to log, and the ended ones in the order of their end.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::ids::RunId;
use crate::runtime::tasks::Tasks;
use parking_lot::{RwLock, RwLockWriteGuard};

use super::log::RunLog;

const SHARDS: usize = 16;

type Shard = RwLock<HashMap<RunId, Arc<RunLog>>>;

/// Every known run's log. A log is locked under its shard, never the other way round.
#[derive(Debug)]
pub(super) struct Runs {
    shards: [Shard; SHARDS],
    /// Where viewers are told of changes.
    tasks: Tasks,
}

impl Runs {
    /// None yet.
    pub(super) fn new(tasks: Tasks) -> Self {
        Self {
            shards: Default::default(),
            tasks,
        }
    }

    /// Acts on a run's log, opening it if need be. The run stays known meanwhile.
    pub(super) fn with_open<T>(&self, run_id: &RunId, act: impl FnOnce(&Arc<RunLog>) -> T) -> T {
        let shard = self.shard(run_id);
        if let Some(log) = shard.read().get(run_id) {
            return act(log);
        }
        let mut known = shard.write();
        known
            .entry(run_id.clone())
            .or_insert_with(|| Arc::new(RunLog::new(run_id.clone(), self.tasks.clone())));
        let known = RwLockWriteGuard::downgrade(known);
        act(&known[run_id])
    }

    /// A known run's log.
    pub(super) fn get(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        self.shard(run_id).read().get(run_id).cloned()
    }

    /// Forgets this very log if it is known and `due` still holds. Tells its viewers.
    pub(super) fn forget_if(&self, log: &Arc<RunLog>, due: impl FnOnce(&RunLog) -> bool) {
        let mut known = self.shard(log.run_id()).write();
        if known
            .get(log.run_id())
            .is_some_and(|found| Arc::ptr_eq(found, log))
            && due(log)
        {
            known.remove(log.run_id());
            log.retire();
            drop(known);
            log.viewers().tell();
        }
    }

    /// Forgets every log that is `due`. Tells their viewers.
    pub(super) fn forget_where(&self, due: impl Fn(&RunLog) -> bool) {
        for shard in &self.shards {
            let forgotten: Vec<_> = shard
                .write()
                .extract_if(|_, log| due(log))
                .map(|(_, log)| log)
                .inspect(|log| log.retire())
                .collect();
            for log in forgotten {
                log.viewers().tell();
            }
        }
    }

    /// Forgets everything and wakes every viewer.
    pub(super) fn clear(&self) {
        self.forget_where(|_| true);
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
pub(super) struct Ended {
    logs: VecDeque<(Arc<RunLog>, usize)>,
    bytes: usize,
}

impl Ended {
    /// Takes a log in that ended with `bytes`, and gives those that must go to stay within `budget`: never the newest.
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

    /// Gives the logs that neither the map nor a viewer holds any more, for the caller to drop once no lock is held.
    pub(super) fn release(&mut self) -> Vec<Arc<RunLog>> {
        let (held, released): (VecDeque<_>, VecDeque<_>) = self
            .logs
            .drain(..)
            .partition(|(log, _)| Arc::strong_count(log) > 1);
        self.logs = held;
        self.bytes -= released.iter().map(|(_, bytes)| bytes).sum::<usize>();
        released.into_iter().map(|(log, _)| log).collect()
    }

    /// Bytes of the logs that are counted.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
