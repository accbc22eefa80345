//! Isolation of runs on their last attempt: a run that kills its process must not exhaust the
//! attempts of the other runs of that process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use deerflow_core::ids::RunId;

/// Time for which a run on its last attempt is isolated. Runs that kill their process usually do so
/// soon after they resume. Longer isolation delays the other runs: each waits for this time.
const ISOLATION: Duration = Duration::from_secs(3);

/// The run that this process took over last for its last attempt.
#[derive(Debug, Default)]
pub(crate) struct Isolation {
    last: Mutex<Option<(RunId, Instant)>>,
    /// `true` if orphaned runs may remain because of the isolation.
    deferring: AtomicBool,
}

impl Isolation {
    /// Records that the run starts its last attempt now.
    pub(crate) fn begin(&self, run: RunId) {
        *self.last.lock() = Some((run, Instant::now()));
    }

    /// Returns the time since the isolated run started; `None` if `is_executed` is `false` for it.
    pub(crate) fn age(&self, is_executed: impl FnOnce(&RunId) -> bool) -> Option<Duration> {
        let last = self.last.lock().clone();
        last.filter(|(run, _)| is_executed(run))
            .map(|(_, since)| since.elapsed())
    }

    pub(crate) fn is_deferring(&self) -> bool {
        self.deferring.load(Ordering::Acquire)
    }

    pub(crate) fn set_deferring(&self, deferring: bool) {
        self.deferring.store(deferring, Ordering::Release);
    }
}

/// Reports whether a run with this many losses starts its last attempt.
pub(crate) fn is_last_attempt(losses: u32, max_attempts: u32) -> bool {
    losses > 0 && losses.checked_add(1) == Some(max_attempts)
}

/// Returns the number of losses of the orphaned runs that this process may not take over now: those
/// that would start their last attempt while another run is isolated. `isolated_for` is the time
/// since that run started.
pub(crate) fn deferred_losses(isolated_for: Option<Duration>, max_attempts: u32) -> Option<u32> {
    isolated_for.filter(|time| *time < ISOLATION)?;
    max_attempts.checked_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_attempts_are_deferred_while_one_is_isolated() {
        let soon = Some(Duration::from_secs(1));
        for (isolated_for, max_attempts, expected) in [
            (soon, 3, Some(1)),
            (soon, 2, Some(0)),
            (soon, 1, None),
            (None, 3, None),
            (Some(ISOLATION), 3, None),
        ] {
            let deferred = deferred_losses(isolated_for, max_attempts);
            assert_eq!(deferred, expected, "{isolated_for:?} {max_attempts}");
            // A deferred run would be on its last attempt after the takeover.
            assert!(deferred.is_none_or(|losses| is_last_attempt(losses + 1, max_attempts)));
        }
        assert!(!is_last_attempt(0, 1) && !is_last_attempt(3, 3));
    }
}
