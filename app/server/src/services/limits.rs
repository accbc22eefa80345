//! Applies configuration changes to the limits of runs.

use harness::runtime::runs::{NodeLifecycle, RunLimits};
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

/// Starts a task that updates the limits of new runs when the configuration changes.
pub(crate) fn apply_config_changes(config: &ConfigHandle, node: NodeLifecycle, tasks: &Tasks) {
    let mut changes = config.subscribe();
    let token = tasks.token().clone();
    tasks.spawn(TaskKind::Service, "run limits", async move {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            let limits = RunLimits::from(&**changes.borrow_and_update());
            node.set_limits(limits);
        }
    });
}
