//! Counts of calls within a period, for rate limits.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Delay of a call that waits for the end of another one.
pub(crate) const ACTIVE_DELAY: Duration = Duration::from_millis(100);

/// Calls in progress, and the ends of earlier ones. A call counts from its start until a period
/// after its end: one that is delayed on its way arrives before its answer, so never together with
/// more calls than permitted.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    active: usize,
    ended: VecDeque<Instant>,
}

impl Calls {
    /// Removes the calls that ended before the period.
    pub(crate) fn expire(&mut self, now: Instant, period: Duration) {
        while self.ended.front().is_some_and(|end| *end + period <= now) {
            self.ended.pop_front();
        }
    }

    /// Returns the number of calls that count.
    pub(crate) fn count(&self) -> usize {
        self.active + self.ended.len()
    }

    /// Returns the time from which fewer than `max` calls count.
    pub(crate) fn permitted(&self, max: usize, now: Instant, period: Duration) -> Instant {
        let Some(excess) = self.count().checked_sub(max) else {
            return now;
        };
        let end = self.ended.get(excess);
        end.map_or(now + ACTIVE_DELAY, |end| *end + period)
    }

    /// Returns whether a call is in progress.
    pub(crate) fn has_active(&self) -> bool {
        self.active > 0
    }

    /// Returns the end of the newest call that has ended within the period.
    pub(crate) fn last_end(&self) -> Option<Instant> {
        self.ended.back().copied()
    }

    /// Counts a call from now on.
    pub(crate) fn begin(&mut self) {
        self.active += 1;
    }

    /// Records the end of a call.
    pub(crate) fn end(&mut self, now: Instant) {
        self.active = self.active.saturating_sub(1);
        self.ended.push_back(now);
    }
}
