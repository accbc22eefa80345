//! `runs`: the limits every run lives under.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;

/// Limits of runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunsConfig {
    /// Seconds after which a run is stopped, whatever it does.
    pub wall_clock_limit_seconds: u64,
    /// Seconds without any progress after which a run is stopped.
    pub idle_limit_seconds: u64,
    /// Seconds that runs may go on once the process was asked to end; then they are given back where their last step ended.
    pub shutdown_grace_seconds: u64,
    /// Runs that may wait on one thread behind the active one.
    pub max_enqueued_per_thread: usize,
    /// Messages that one request may bring.
    pub max_messages_per_request: usize,
    /// Messages that a request may make a thread hold.
    pub max_messages_per_thread: usize,
}

impl Default for RunsConfig {
    fn default() -> Self {
        Self {
            wall_clock_limit_seconds: 86_400,
            idle_limit_seconds: 600,
            shutdown_grace_seconds: 30,
            max_enqueued_per_thread: 16,
            max_messages_per_request: 10_000,
            max_messages_per_thread: 100_000,
        }
    }
}

impl RunsConfig {
    /// [`RunsConfig::wall_clock_limit_seconds`] as a duration.
    pub fn wall_clock_limit(&self) -> Duration {
        Duration::from_secs(self.wall_clock_limit_seconds)
    }

    /// [`RunsConfig::idle_limit_seconds`] as a duration.
    pub fn idle_limit(&self) -> Duration {
        Duration::from_secs(self.idle_limit_seconds)
    }

    /// [`RunsConfig::shutdown_grace_seconds`] as a duration.
    pub fn shutdown_grace(&self) -> Duration {
        Duration::from_secs(self.shutdown_grace_seconds)
    }

    pub(super) fn check(&self, check: &mut Checker) {
        check.within(
            "wall_clock_limit_seconds",
            self.wall_clock_limit_seconds,
            1..,
        );
        check.within("idle_limit_seconds", self.idle_limit_seconds, 1..);
        check.within(
            "shutdown_grace_seconds",
            self.shutdown_grace_seconds,
            ..3_601,
        );
        check.within(
            "max_messages_per_request",
            self.max_messages_per_request as u64,
            1..,
        );
        check.within(
            "max_messages_per_thread",
            self.max_messages_per_thread as u64,
            1..,
        );
    }
}
