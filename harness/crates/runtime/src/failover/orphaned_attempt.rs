//! Resolves run attempts that this node owns in the store but does not execute: releases them, or
//! ends them if they have a cancel request.

use std::sync::Arc;

use crate::kernel::{FinalizationGuard, Runtime};
use crate::ports::{CommitError, OwnedRun, RunCommit, WakeSignal};
use crate::termination::end_orphaned;
use deerflow_core::actor_context::Owner;
use deerflow_core::tasks::TaskKind;

/// Releases or ends an orphaned run in its own task: the store may be slow. Does nothing while
/// another task finalizes the attempt.
pub(crate) fn resolve(run: OwnedRun, runtime: &Arc<Runtime>) {
    let Some(finalization) = runtime
        .registry
        .finalization
        .acquire(&run.run_id, run.attempt)
    else {
        return;
    };
    let runtime = runtime.clone();
    let tasks = runtime.ports.tasks.clone();
    tasks.spawn(TaskKind::Service, "orphaned run", async move {
        if run.cancel.is_some() {
            return end(&run, finalization, &runtime).await;
        }
        release(run, &runtime).await;
        drop(finalization);
    });
}

/// Releases a run whose claim reply was lost, so that a process executes it.
async fn release(run: OwnedRun, runtime: &Runtime) {
    let commit = RunCommit::new(
        run.run_id.clone(),
        run.thread_id,
        run.attempt,
        runtime.ports.clock.now(),
    )
    .releasing();
    match runtime.ports.commit.commit(commit.into()).await {
        Ok(()) => {
            tracing::warn!(
                run_id = %run.run_id,
                "released a run that was claimed but never started"
            );
            runtime.ports.bell.ring(WakeSignal::Waiting);
            runtime.registry.dispatch_wake.wake();
        }
        Err(CommitError::Store(error)) => {
            tracing::warn!(run_id = %run.run_id, %error, "cannot release a run yet")
        }
        Err(_) => {}
    }
}

/// Ends an orphaned run that has a cancel request.
async fn end(of: &OwnedRun, finalization: FinalizationGuard, runtime: &Arc<Runtime>) {
    match runtime.ports.query.get(&of.run_id, &Owner::None).await {
        Ok(Some(run)) if run.attempt == of.attempt && !run.status.is_terminal() => {
            // Ending the run acquires the guard again.
            drop(finalization);
            end_orphaned(&run, runtime).await;
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(run_id = %of.run_id, %error, "cannot read a cancelled run")
        }
    }
}
