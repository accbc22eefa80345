//! Deletes expired threads and orphaned files of deleted threads, at the start and at intervals.

use std::sync::Arc;

use deerflow_gateway::GatewayState;
use deerflow_gateway::background::{sweep_files, sweep_threads};
use harness::runtime::tasks::{TaskKind, Tasks};

use crate::config::ConfigHandle;

/// Starts the sweep loop, with the interval of the current configuration.
pub(crate) fn spawn_sweep_loop(config: &ConfigHandle, state: Arc<GatewayState>, tasks: &Tasks) {
    let (config, token) = (config.clone(), tasks.token().clone());
    tasks.spawn(TaskKind::Service, "thread expiry", async move {
        loop {
            match sweep_threads(&state).await {
                Ok(0) => {}
                Ok(threads) => tracing::info!(
                    threads,
                    "deleted or trimmed expired threads"
                ),
                Err(error) => {
                    tracing::warn!(%error, "cannot sweep expired threads, retrying at the next interval")
                }
            }
            if let Err(error) = sweep_files(&state).await {
                tracing::warn!(%error, "cannot sweep files of deleted threads, retrying at the next interval");
            }
            let pause = config.current().checkpointer.ttl.sweep_interval();
            tokio::select! {
                () = token.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}
