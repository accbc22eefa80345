//! `runs`: limits that apply to every run.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;

/// Limits of every run and of the requests that start runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunsConfig {
    /// Maximum duration of a run, in seconds.
    pub wall_clock_limit_seconds: u64,
    /// Maximum time without progress, in seconds.
    pub idle_limit_seconds: u64,
    /// Time that runs may continue after shutdown was requested, in seconds. Then they are released
    /// at the end of their last step.
    pub shutdown_grace_seconds: u64,
    /// Maximum number of queued runs of one thread.
    pub max_enqueued_per_thread: usize,
    /// Maximum number of messages in one request.
    pub max_messages_per_request: usize,
    /// Maximum number of messages of a thread after a request.
    pub max_messages_per_thread: usize,
    /// Maximum total size of the threads that stay in memory for their next runs, in MiB.
    pub thread_states_mb: usize,
    /// Maximum number of events that the log of a thread holds in memory for its readers.
    pub max_log_events_per_thread: usize,
    /// Maximum size of these events, in MiB.
    pub max_log_mb_per_thread: usize,
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
            thread_states_mb: 256,
            max_log_events_per_thread: 10_000,
            max_log_mb_per_thread: 32,
        }
    }
}

impl RunsConfig {
    /// Returns [`RunsConfig::wall_clock_limit_seconds`] as a duration.
    pub fn wall_clock_limit(&self) -> Duration {
        Duration::from_secs(self.wall_clock_limit_seconds)
    }

    /// Returns [`RunsConfig::idle_limit_seconds`] as a duration.
    pub fn idle_limit(&self) -> Duration {
        Duration::from_secs(self.idle_limit_seconds)
    }

    /// Returns [`RunsConfig::shutdown_grace_seconds`] as a duration.
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
        check.within(
            "thread_states_mb",
            self.thread_states_mb as u64,
            ..1_048_577,
        );
        check.within(
            "max_log_events_per_thread",
            self.max_log_events_per_thread as u64,
            1..,
        );
        check.within(
            "max_log_mb_per_thread",
            self.max_log_mb_per_thread as u64,
            1..1_048_577,
        );
    }
}
