//! Polls of the runs that this process executes, by which a run that blocks its thread is detected.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::active_run::ActiveRun;
use deerflow_core::ids::{RunId, ThreadId};

/// Number that no poll has.
const NO_POLL: u64 = 0;

/// Attempt of a run whose task is in this process.
#[derive(Debug)]
pub(crate) struct PolledRun {
    pub(crate) run_id: RunId,
    pub(crate) thread_id: ThreadId,
    pub(crate) attempt: u32,
    pub(crate) active: Arc<ActiveRun>,
    /// Number of begun and ended polls: odd during a poll. Written by the task only.
    polls: AtomicU64,
    /// Number of the poll that stalled.
    stalled: AtomicU64,
}

impl PolledRun {
    pub(crate) fn new(
        run_id: RunId,
        thread_id: ThreadId,
        attempt: u32,
        active: Arc<ActiveRun>,
    ) -> Self {
        Self {
            run_id,
            thread_id,
            attempt,
            active,
            polls: AtomicU64::new(0),
            stalled: AtomicU64::new(NO_POLL),
        }
    }

    /// Returns the number of the poll that has not returned.
    pub(crate) fn current_poll(&self) -> Option<u64> {
        let polls = self.polls.load(Ordering::Relaxed);
        (polls % 2 == 1).then_some(polls)
    }

    /// Records that this poll has stalled.
    pub(crate) fn mark_stalled(&self, poll: u64) {
        self.stalled.store(poll, Ordering::Relaxed);
    }

    /// Reports whether a stalled poll has not returned.
    pub(crate) fn is_stalled(&self) -> bool {
        self.current_poll() == Some(self.stalled.load(Ordering::Relaxed))
    }

    /// Counts the begin or the end of a poll. The value orders no other memory, and a late read of it
    /// delays a detection by one interval.
    fn count(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }
}

/// A poll that runs. Ends also if the poll panics.
struct Poll<'a>(&'a PolledRun);

impl<'a> Poll<'a> {
    fn begin(run: &'a PolledRun) -> Self {
        run.count();
        Self(run)
    }
}

impl Drop for Poll<'_> {
    fn drop(&mut self) {
        self.0.count();
    }
}

type Entries = Arc<Mutex<BTreeMap<(RunId, u32), Arc<PolledRun>>>>;

/// Attempts whose tasks are in this process, also those that this process no longer owns.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolledRuns(Entries);

/// Removes an attempt when its task has ended.
struct RegisteredRun {
    of: PolledRuns,
    run: Arc<PolledRun>,
}

impl Drop for RegisteredRun {
    fn drop(&mut self) {
        let key = (self.run.run_id.clone(), self.run.attempt);
        self.of.0.lock().remove(&key);
    }
}

impl PolledRuns {
    /// Observes the polls of `work`, which executes this attempt.
    pub(crate) fn observe<F: Future>(
        &self,
        run: PolledRun,
        work: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let run = Arc::new(run);
        let key = (run.run_id.clone(), run.attempt);
        self.0.lock().insert(key, run.clone());
        let entry = RegisteredRun {
            of: self.clone(),
            run,
        };
        async move {
            let mut work = pin!(work);
            poll_fn(|cx| {
                let _poll = Poll::begin(&entry.run);
                work.as_mut().poll(cx)
            })
            .await
        }
    }

    /// Returns all attempts.
    pub(crate) fn all(&self) -> Vec<Arc<PolledRun>> {
        self.0.lock().values().cloned().collect()
    }

    /// Returns the number of stalled attempts.
    pub(crate) fn stalled_count(&self) -> usize {
        let runs = self.0.lock();
        runs.values().filter(|run| run.is_stalled()).count()
    }

    /// Reports whether an attempt of this run is stalled here.
    pub(crate) fn is_stalled(&self, run_id: &RunId) -> bool {
        let attempts = (run_id.clone(), 0)..=(run_id.clone(), u32::MAX);
        let runs = self.0.lock();
        runs.range(attempts).any(|(_, run)| run.is_stalled())
    }
}

#[cfg(test)]
#[path = "polled_runs_tests.rs"]
mod tests;
