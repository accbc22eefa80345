//! Detects runs that block a thread of this process, and gives up their attempts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use crate::kernel::{PolledRun, Runtime, StopSignal};
use crate::ports::{CommitError, RunCommit, WakeSignal};
use deerflow_core::ids::RunId;

/// Number of checks within the limit.
const CHECKS_PER_LIMIT: u32 = 8;
const MIN_INTERVAL: Duration = Duration::from_millis(500);
const MAX_INTERVAL: Duration = Duration::from_secs(15);
/// Timeout of the commit that gives up an attempt; it is retried at the next check.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Watch over the polls of runs.
///
/// A poll that does not return cannot be stopped, and neither can the lease of one run expire alone.
/// So the attempt ends at the store: the run is released with a loss, the next attempt has another
/// number, and the store refuses what the stalled attempt writes later.
pub(crate) struct StallWatch {
    runtime: Arc<Runtime>,
    limit: Duration,
    /// Attempts that were within a poll at the last check.
    seen: HashMap<(RunId, u32), Seen>,
}

/// Poll at the last check.
#[derive(Debug)]
struct Seen {
    poll: u64,
    /// Time for which it was observed.
    blocked: Duration,
    /// `true` once the attempt was given up.
    given_up: bool,
}

impl StallWatch {
    pub(crate) fn new(runtime: Arc<Runtime>, limit: Duration) -> Self {
        Self {
            runtime,
            limit,
            seen: HashMap::new(),
        }
    }

    /// Checks at intervals until shutdown.
    pub(crate) async fn run(&mut self) {
        let interval = (self.limit / CHECKS_PER_LIMIT).clamp(MIN_INTERVAL, MAX_INTERVAL);
        let stop = self.runtime.ports.tasks.token().clone();
        let mut checked = Instant::now();
        while stop.run_until_cancelled(sleep(interval)).await.is_some() {
            // A process that was suspended executed no poll in the meantime.
            let elapsed = checked.elapsed().min(2 * interval);
            checked = Instant::now();
            self.check(elapsed).await;
        }
    }

    /// Adds the time since the last check to the polls that have not returned since, and gives up
    /// the attempts of those that exceed the limit.
    pub(crate) async fn check(&mut self, elapsed: Duration) {
        let mut seen = HashMap::new();
        for run in self.runtime.registry.polled.all() {
            let Some(poll) = run.current_poll() else {
                continue;
            };
            let key = (run.run_id.clone(), run.attempt);
            let before = self.seen.get(&key).filter(|before| before.poll == poll);
            let blocked = before.map_or(Duration::ZERO, |before| before.blocked + elapsed);
            let mut given_up = before.is_some_and(|before| before.given_up);
            if blocked >= self.limit && !given_up {
                given_up = self.give_up(&run, poll, blocked).await;
            }
            let now = Seen {
                poll,
                blocked,
                given_up,
            };
            seen.insert(key, now);
        }
        self.seen = seen;
    }

    /// Releases the run with a loss. Returns `false` if the store did not answer.
    async fn give_up(&self, run: &PolledRun, poll: u64, blocked: Duration) -> bool {
        run.mark_stalled(poll);
        let (run_id, ports) = (&run.run_id, &self.runtime.ports);
        let seconds = blocked.as_secs();
        tracing::error!(%run_id, attempt = run.attempt, seconds, "a run blocks a thread of this process");
        let at = ports.clock.now();
        let commit = RunCommit::new(run_id.clone(), run.thread_id.clone(), run.attempt, at);
        let commit = ports.commit.commit(commit.releasing_as_lost().into());
        match timeout(COMMIT_TIMEOUT, commit).await {
            Ok(Ok(())) => tracing::warn!(%run_id, "gave up the stalled attempt of a run"),
            Ok(Err(CommitError::Store(error))) => {
                tracing::warn!(%run_id, %error, "cannot give up a stalled attempt yet");
                return false;
            }
            Ok(Err(CommitError::AlreadyTerminal(_) | CommitError::Gone(_))) => return true,
            // Another process owns the run, or the reply of an earlier commit was lost.
            Ok(Err(CommitError::OwnershipLost { .. })) => {}
            Err(_) => {
                tracing::warn!(%run_id, "cannot give up a stalled attempt yet: the store does not respond");
                return false;
            }
        }
        run.active.stop(StopSignal::Fence);
        let registry = &self.runtime.registry;
        registry.active.remove_exactly(run_id, &run.active);
        // Callers that wait here read the store from now on.
        run.active.detached();
        ports.bell.ring(WakeSignal::Waiting);
        registry.dispatch_wake.wake();
        true
    }
}

#[cfg(test)]
#[path = "stall_watch_tests.rs"]
mod tests;
