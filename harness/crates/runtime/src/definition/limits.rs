//! Limits of runs.

use std::time::Duration;

use super::request::Recovery;
use deerflow_core::config::{AppConfig, RunRecovery};
use deerflow_core::quota::UserQuotas;

/// Limits of every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// Maximum number of super-steps if the request has no valid one.
    pub default_recursion_limit: u64,
    /// Maximum number of super-steps that a request may set.
    pub max_recursion_limit: u64,
    /// Maximum duration of a run, over all attempts.
    pub wall_clock: Duration,
    /// Duration of a process's lease in a shared store.
    pub lease: Duration,
    /// Recovery of a run whose process died.
    pub recovery: Recovery,
    /// Number of processes that may die while they execute a run, or that it may block, before the run
    /// ends as failed.
    pub max_attempts: u32,
    /// Maximum duration of one poll of a run's task, after which the attempt counts as a loss: the
    /// run blocks a thread of its process. Zero is unlimited. Read when the process registers.
    pub stall: Duration,
    /// Maximum number of queued runs per thread.
    pub max_enqueued: usize,
    /// Maximum time without an event from the agent. Does not apply while a tool runs or human
    /// input is awaited.
    pub idle: Duration,
    /// Retention of an ended run's events in the bridge.
    pub stream_retention: Duration,
    /// Maximum length of a trace text in the journal, in characters.
    pub max_trace_chars: usize,
    /// Maximum number of messages in the input of one run.
    pub max_input_messages: usize,
    /// Maximum number of messages of a thread, checked when an input is added. Messages of agents
    /// are not limited by it.
    pub max_thread_messages: usize,
    /// Maximum total size of the states of threads that the process retains for their next runs, in
    /// estimated bytes. Read when the process starts.
    pub thread_states_bytes: usize,
    /// Limits of the unfinished runs of one user.
    pub per_user: UserRunLimits,
}

/// Limits of the unfinished runs of one user. `None` is unlimited, and so are runs without a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserRunLimits {
    /// Maximum number of runs that processes own. Further runs are queued. Runs that are taken over
    /// or resume after a release are not delayed by it.
    pub max_active: Option<u64>,
    /// Maximum number of queued runs without a cancel request, including delayed ones.
    pub max_queued: Option<u64>,
}

impl UserRunLimits {
    /// Reports whether all numbers of runs are permitted.
    pub fn is_unlimited(&self) -> bool {
        self.max_active.is_none() && self.max_queued.is_none()
    }
}

impl From<UserQuotas> for UserRunLimits {
    fn from(quotas: UserQuotas) -> Self {
        Self {
            max_active: quotas.active_runs,
            max_queued: quotas.queued_runs,
        }
    }
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            default_recursion_limit: 100,
            max_recursion_limit: 1_000,
            wall_clock: Duration::from_secs(24 * 60 * 60),
            lease: Duration::from_secs(10),
            recovery: Recovery::Resume,
            max_attempts: 3,
            stall: Duration::from_secs(120),
            max_enqueued: 16,
            idle: Duration::from_secs(10 * 60),
            stream_retention: Duration::from_secs(24 * 60 * 60),
            max_trace_chars: 10_240,
            max_input_messages: 10_000,
            max_thread_messages: 100_000,
            thread_states_bytes: 256 << 20,
            per_user: UserRunLimits::default(),
        }
    }
}

impl From<&AppConfig> for RunLimits {
    fn from(config: &AppConfig) -> Self {
        Self {
            max_recursion_limit: config.max_recursion_limit,
            wall_clock: config.runs.wall_clock_limit(),
            lease: Duration::from_secs(config.run_ownership.lease_seconds),
            recovery: match config.run_ownership.recovery {
                RunRecovery::Resume => Recovery::Resume,
                RunRecovery::Fail => Recovery::Fail,
            },
            max_attempts: config.run_ownership.max_attempts,
            stall: Duration::from_secs(config.run_ownership.stall_seconds),
            max_enqueued: config.runs.max_enqueued_per_thread,
            idle: config.runs.idle_limit(),
            stream_retention: Duration::from_secs(config.stream_bridge.stream_ttl_seconds),
            max_trace_chars: config.run_events.max_trace_content,
            max_input_messages: config.runs.max_messages_per_request,
            max_thread_messages: config.runs.max_messages_per_thread,
            thread_states_bytes: config.runs.thread_states_mb << 20,
            ..Self::default()
        }
    }
}
