//! Fires due tasks and follows active runs. Any number of nodes may run a scheduler over one store:
//! each firing is stored by one of them.

use std::time::Duration;

use deerflow_runtime::runs::store::StoreError;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::firings::TaskFirings;

/// Maximum number of tasks handled concurrently, and fetched per poll.
const MAX_CONCURRENT: usize = 16;
const BATCH: usize = 200;

/// Polls the store.
#[derive(Debug)]
pub struct TaskScheduler {
    firings: TaskFirings,
    /// `false` if tasks do not fire by their schedules; active runs are followed anyway.
    fires: bool,
    interval: Duration,
}

impl TaskScheduler {
    /// Creates a scheduler that polls at `interval`. Without `fires` it fires no task and only
    /// follows active runs.
    pub fn new(firings: TaskFirings, fires: bool, interval: Duration) -> Self {
        Self {
            firings,
            fires,
            interval,
        }
    }

    /// Polls the store until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.poll().await {
                tracing::warn!(%error, "cannot read scheduled tasks");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(self.interval) => {}
            }
        }
    }

    /// Follows active runs, and fires all tasks that are due now.
    pub async fn poll(&self) -> Result<(), StoreError> {
        let active = self.firings.store().active(None, BATCH).await?;
        futures_util::stream::iter(active)
            .for_each_concurrent(MAX_CONCURRENT, async |run| {
                if let Err(error) = self.firings.follow(&run).await {
                    tracing::warn!(%error, task = %run.task_id, "cannot follow the run of a scheduled task");
                }
            })
            .await;
        if !self.fires {
            return Ok(());
        }
        let due = self.firings.store().due(self.firings.now(), BATCH).await?;
        futures_util::stream::iter(due)
            .for_each_concurrent(MAX_CONCURRENT, async |task| {
                if let Err(error) = self.firings.fire(&task).await {
                    tracing::warn!(%error, task = %task.task_id, "cannot fire a scheduled task");
                }
            })
            .await;
        Ok(())
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
