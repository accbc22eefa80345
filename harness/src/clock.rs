//! Time is asked for, never taken: the port, the system clock, and a clock that tests move by hand.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use parking_lot::Mutex;

/// Where wall-clock time comes from. Durations and time-outs use tokio's timers, which tests pause.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The present moment in UTC.
    fn now(&self) -> DateTime<Utc>;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one home of the wall clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<Mutex<DateTime<Utc>>>);

impl ManualClock {
    /// A clock that shows `start`.
    pub fn starting_at(start: DateTime<Utc>) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock; a negative delta moves it back.
    pub fn advance(&self, by: TimeDelta) {
        *self.0.lock() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock()
    }
}

/// The wire form of a moment: ISO 8601, microseconds, `+00:00`.
pub fn iso(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// The same with a `Z`, as memories and the console write it.
pub fn iso_z(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}
