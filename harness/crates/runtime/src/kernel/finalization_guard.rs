//! Guards that ensure that at most one task finalizes or releases an orphaned run attempt.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use deerflow_core::ids::RunId;

/// Run attempts that a task of this process is finalizing or releasing.
#[derive(Debug, Clone, Default)]
pub(crate) struct FinalizationGuards(Arc<Mutex<BTreeSet<(RunId, u32)>>>);

/// Guard of one attempt, until it is dropped.
#[derive(Debug)]
pub(crate) struct FinalizationGuard {
    all: FinalizationGuards,
    attempt: (RunId, u32),
}

impl FinalizationGuards {
    /// Returns `None` if another task holds the guard of this attempt.
    pub(crate) fn acquire(&self, run_id: &RunId, attempt: u32) -> Option<FinalizationGuard> {
        let attempt = (run_id.clone(), attempt);
        self.0
            .lock()
            .insert(attempt.clone())
            .then(|| FinalizationGuard {
                all: self.clone(),
                attempt,
            })
    }
}

impl Drop for FinalizationGuard {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::run;

    #[test]
    fn guard_is_held_by_one_task_per_attempt() {
        let guards = FinalizationGuards::default();
        let first = guards.acquire(&run("a"), 1);
        assert!(first.is_some() && guards.acquire(&run("a"), 1).is_none());
        assert!(guards.acquire(&run("a"), 2).is_some() && guards.acquire(&run("b"), 1).is_some());
        drop(first);
        assert!(guards.acquire(&run("a"), 1).is_some());
    }
}
