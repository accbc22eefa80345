//! Ends runs that no task executes.

use std::sync::Arc;

use super::end_commit::{self, LOST_TEXT};
use super::finalizer::RunFinalizer;
use crate::definition::{
    CancelAction, LOST_ERROR, RunFailure, RunRecord, RunStatus, StopReason, ThreadStatus,
};
use crate::kernel::{RunOutcome, Runtime};
use crate::ports::{RunCommit, RunEnd};

/// Ends a claimed run that cannot be started.
pub(crate) async fn end_unstartable(
    run: &RunRecord,
    reason: StopReason,
    why: &str,
    runtime: &Arc<Runtime>,
) {
    let Some(finalizer) = RunFinalizer::start(run, runtime) else {
        return;
    };
    tracing::error!(run_id = %run.run_id, reason = why, "cannot start a run");
    let end = end_commit::end_orphan(run, reason, why, &runtime.ports).await;
    let (status, error) = match run.cancel {
        Some(CancelAction::Interrupt) => (RunStatus::Interrupted, None),
        // A rollback was requested, so subscribers see no failure.
        Some(CancelAction::Rollback) => (RunStatus::Error, None),
        None => (
            RunStatus::Error,
            Some(RunFailure::new(LOST_ERROR, why).into()),
        ),
    };
    finalizer.finish(
        end,
        RunOutcome {
            status,
            error,
            values: None,
        },
    );
}

/// Ends a cancelled run that was started or claimed before, and that no task executes.
pub(crate) async fn end_orphaned(run: &RunRecord, runtime: &Arc<Runtime>) {
    end_unstartable(run, StopReason::OrphanRecovered, LOST_TEXT, runtime).await;
}

/// Ends a cancelled queued run and notifies waiting callers. A run that never started does not
/// change its thread.
pub(crate) async fn end_queued(run: &RunRecord, runtime: &Arc<Runtime>) {
    if run.was_released() {
        return end_orphaned(run, runtime).await;
    }
    let Some(finalizer) = RunFinalizer::start(run, runtime) else {
        return;
    };
    let rolled_back = run.cancel == Some(CancelAction::Rollback);
    let status = RunStatus::Interrupted;
    let commit = RunCommit {
        end: Some(RunEnd {
            status,
            error: None,
            error_name: None,
            stop_reason: rolled_back.then(|| StopReason::RolledBack.into()),
            completion: run.completion.clone(),
            thread_status: ThreadStatus::Idle,
            title: None,
            webhook: end_commit::webhook_of(run, None),
            kept_values: None,
            // The run has no checkpoints: this sets the status of the thread by its newest
            // checkpoint.
            discard_checkpoints: true,
            forget_calls: false,
        }),
        ..RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            runtime.ports.clock.now(),
        )
    };
    let end = end_commit::store_end(commit, &runtime.ports).await;
    finalizer.finish(
        end,
        RunOutcome {
            status,
            error: None,
            values: None,
        },
    );
}
