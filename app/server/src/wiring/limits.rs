//! The bounds of runs, from the configuration in force.

use std::sync::Arc;
use std::time::Duration;

use harness::config::{AppConfig, RunRecovery};
use harness::runtime::runs::{Recovery, RunLimits, RunsFacade};
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

pub(super) fn of(config: &AppConfig) -> RunLimits {
    RunLimits {
        max_recursion_limit: config.max_recursion_limit,
        wall_clock: config.runs.wall_clock_limit(),
        lease: Duration::from_secs(config.run_ownership.lease_seconds),
        recovery: match config.run_ownership.recovery {
            RunRecovery::Resume => Recovery::Resume,
            RunRecovery::Fail => Recovery::Fail,
        },
        max_attempts: config.run_ownership.max_attempts,
        max_enqueued: config.runs.max_enqueued_per_thread,
        idle: config.runs.idle_limit(),
        stream_retention: Duration::from_secs(config.stream_bridge.stream_ttl_seconds),
        max_trace_chars: config.run_events.max_trace_content,
        ..RunLimits::default()
    }
}

/// New runs get new bounds whenever the configuration changes.
pub(super) fn follow(config: &ConfigHandle, runs: Arc<RunsFacade>, tasks: &Tasks) {
    let mut changes = config.subscribe();
    let token = tasks.token().clone();
    tasks.spawn(TaskKind::Service, "run limits", async move {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            let limits = of(&changes.borrow_and_update());
            runs.set_limits(limits);
        }
    });
}
