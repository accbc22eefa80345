//! The runs on which nobody works and that a task of this process is ending or giving back: each by one task at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::ids::RunId;

/// Which attempts of which runs these are.
#[derive(Debug, Clone, Default)]
pub(super) struct SettlingRuns(Arc<Mutex<BTreeSet<(RunId, u32)>>>);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct Settling {
    all: SettlingRuns,
    attempt: (RunId, u32),
}

impl SettlingRuns {
    /// `None` when another task is at it.
    pub(super) fn begin(&self, run_id: &RunId, attempt: u32) -> Option<Settling> {
        let attempt = (run_id.clone(), attempt);
        self.0.lock().insert(attempt.clone()).then(|| Settling {
            all: self.clone(),
            attempt,
        })
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.attempt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::run;

    #[test]
    fn an_attempt_is_settled_by_one_task_at_a_time() {
        let runs = SettlingRuns::default();
        let first = runs.begin(&run("a"), 1);
        assert!(first.is_some() && runs.begin(&run("a"), 1).is_none());
        assert!(runs.begin(&run("a"), 2).is_some() && runs.begin(&run("b"), 1).is_some());
        drop(first);
        assert!(runs.begin(&run("a"), 1).is_some());
    }
}
