//! The bounds of runs, from the configuration in force.

use std::sync::Arc;

use harness::runtime::runs::{RunLimits, RunsFacade};
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

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
            let limits = RunLimits::from(&**changes.borrow_and_update());
            runs.set_limits(limits);
        }
    });
}
