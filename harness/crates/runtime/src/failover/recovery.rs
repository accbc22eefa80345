//! Ends queued runs that were cancelled, and registers the other queued runs at startup.

use std::sync::Arc;

use crate::definition::{CancelAction, RunStatus, StoreError};
use crate::kernel::{RunError, Runtime};
use crate::ports::UnfinishedRun;
use crate::termination::end_queued;
use deerflow_core::actor_context::Owner;

/// Ends queued runs that have a cancel request, and creates handles for the other queued runs of an
/// exclusive store. They can start only in this process, so callers can wait on the handles.
pub(crate) async fn register_queued(runtime: &Arc<Runtime>) -> Result<(), RunError> {
    for run in end_cancelled_queued(runtime).await? {
        if !runtime.registry.node_lease.is_shared() {
            let queued = &runtime.registry.active;
            queued.enqueue(&queued.get_or_insert(&run.run_id));
        }
    }
    Ok(())
}

/// Ends queued runs that have a cancel request which the requesting process or operator could not
/// complete. Returns the other queued runs.
pub(crate) async fn end_cancelled_queued(
    runtime: &Arc<Runtime>,
) -> Result<Vec<UnfinishedRun>, RunError> {
    let mut queued = runtime.ports.query.standing(None, &Owner::None).await?;
    queued.retain(|run| !run.status.is_owned());
    let (cancelled, queued): (Vec<_>, Vec<_>) =
        queued.into_iter().partition(|run| run.cancel_requested);
    for run in &cancelled {
        match runtime.ports.query.get(&run.run_id, &Owner::None).await {
            Ok(Some(run)) if run.status == RunStatus::Pending => end_queued(&run, runtime).await,
            Ok(_) => {}
            // The store ends a run that cannot be read.
            Err(StoreError::Failed(why)) => {
                tracing::error!(run_id = %run.run_id, why, "cannot read a cancelled queued run");
                runtime
                    .ports
                    .create
                    .request_cancel(
                        &run.run_id,
                        CancelAction::Interrupt,
                        runtime.ports.clock.now(),
                    )
                    .await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(queued)
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
