//! Looks for threads whose time is over, and for files that deleted ones left, at the start and again and again.

use std::sync::Arc;

use deerflow_gateway::{GatewayState, sweep_files, sweep_threads};
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

/// Sweeps at the pace of the configuration in force.
pub(super) fn follow(config: &ConfigHandle, state: Arc<GatewayState>, tasks: &Tasks) {
    let (config, token) = (config.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "thread expiry", async move {
        loop {
            match sweep_threads(&state).await {
                Ok(0) => {}
                Ok(threads) => tracing::info!(
                    threads,
                    "threads went whose time was over, or their past did"
                ),
                Err(error) => {
                    tracing::warn!(%error, "threads whose time is over stay until the next look")
                }
            }
            if let Err(error) = sweep_files(&state).await {
                tracing::warn!(%error, "files of deleted threads stay until the next look");
            }
            let pause = config.current().checkpointer.ttl.sweep_interval();
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}
