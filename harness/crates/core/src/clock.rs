//! Clock port, the clock of the operating system, and a clock that only the program sets.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use parking_lot::Mutex;

/// Source of wall-clock time. Durations and timeouts use tokio's timers, which tests pause.
///
/// ```
/// use chrono::{DateTime, TimeDelta, Utc};
/// use deerflow_core::clock::{Clock, SystemClock};
///
/// /// Clock that differs from the system's by a constant.
/// #[derive(Debug)]
/// struct Shifted(TimeDelta);
///
/// impl Clock for Shifted {
///     fn now(&self) -> DateTime<Utc> {
///         SystemClock.now() + self.0
///     }
/// }
///
/// assert!(Shifted(TimeDelta::hours(1)).now() > SystemClock.now());
/// ```
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the current time in UTC.
    fn now(&self) -> DateTime<Utc>;
}

/// Clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one home of the wall clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// Clock with a fixed time, changed only by [`ManualClock::advance`].
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<DateTime<Utc>>>);

impl ManualClock {
    /// Creates a clock set to `start`.
    pub fn starting_at(start: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Adds `by` to the time; a negative value sets the clock back.
    pub fn advance(&self, by: TimeDelta) {
        *self.0.lock() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock()
    }
}

/// Formats a time for the wire: ISO 8601, microseconds, `+00:00`.
pub fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// Formats a time with `Z` instead of `+00:00`, as in user memory and in the console API.
pub fn iso_z(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}
