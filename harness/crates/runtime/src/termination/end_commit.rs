//! Commits the end of a run that no task executes.

use std::sync::Arc;

use std::time::Duration;

use super::lost_input::restored_input;
use crate::definition::{
    CancelAction, LOST_ERROR, RunFailure, RunRecord, RunStatus, StopReason, StoreError,
    ThreadStatus,
};
use crate::ports::{
    CommitError, LifecycleKind, RunCommit, RunEnd, RunLifecycleEvent, RuntimePorts, WebhookCall,
};
use deerflow_core::actor_context::Owner;
use deerflow_core::fail_points;

/// Error text of a run whose process died.
pub(crate) const LOST_TEXT: &str = "the process that executed the run ended before it";

/// Interval of retries that no caller waits for.
pub(crate) const END_RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Result of an attempt to commit the end of a run.
#[derive(Debug)]
pub(crate) enum EndCommit {
    /// The end is durable.
    Stored,
    /// The run has ended already, or another attempt owns it.
    Refused,
    /// The store failed; this commit is still to be written.
    Deferred(Arc<RunCommit>),
}

/// Ends an orphaned run that this process owns, with the error text `why`.
pub(crate) async fn end_orphan(
    run: &RunRecord,
    reason: StopReason,
    why: &str,
    ports: &RuntimePorts,
) -> EndCommit {
    let rolled_back = run.cancel == Some(CancelAction::Rollback);
    // A queued run that never started does not hold its thread: another run may be writing to it.
    let writes = run.holds_thread() && !rolled_back;
    let (checkpoints, events) = if writes {
        restored_input(run, ports).await
    } else {
        Default::default()
    };
    let (status, error, stop_reason) = match run.cancel {
        Some(CancelAction::Interrupt) => (RunStatus::Interrupted, None, reason),
        Some(CancelAction::Rollback) => (
            RunStatus::Error,
            Some("Rolled back by user".to_owned()),
            StopReason::RolledBack,
        ),
        None => (RunStatus::Error, Some(why.to_owned()), reason),
    };
    let webhook = webhook_of(run, error.as_deref());
    let commit = RunCommit {
        events,
        checkpoints,
        end: Some(RunEnd {
            status,
            error,
            error_name: None,
            stop_reason: Some(stop_reason.clone().into()),
            completion: run.completion.clone(),
            thread_status: if rolled_back {
                ThreadStatus::Idle
            } else {
                ThreadStatus::after(status, false)
            },
            title: None,
            webhook,
            kept_values: None,
            discard_checkpoints: rolled_back,
            forget_calls: true,
        }),
        ..RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            ports.clock.now(),
        )
    };
    tracing::warn!(
        run_id = %run.run_id, thread_id = %run.thread_id, %status, reason = %stop_reason,
        "ending an orphaned run"
    );
    let end = store_end(commit, ports).await;
    if rolled_back && let Err(error) = ports.events.delete_run(&run.thread_id, &run.run_id).await {
        tracing::warn!(
            run_id = %run.run_id, %error,
            "cannot delete the journal of a rolled-back run"
        );
    }
    end
}

/// Tries once to commit the end of a run.
pub(crate) async fn store_end(commit: RunCommit, ports: &RuntimePorts) -> EndCommit {
    let commit = Arc::new(commit);
    match ports.commit.commit(Arc::clone(&commit)).await {
        Ok(()) => {
            fail_points::pass("orphan.ended");
            EndCommit::Stored
        }
        Err(CommitError::Store(error)) => {
            tracing::error!(run_id = %commit.run_id, %error, "cannot store the end of a run yet");
            EndCommit::Deferred(commit)
        }
        Err(refused) => {
            tracing::info!(
                run_id = %commit.run_id, reason = %refused,
                "an unfinished run was already ended by another process"
            );
            EndCommit::Refused
        }
    }
}

impl EndCommit {
    /// Waits until the end is durable or the process shuts down. Returns `false` if another commit
    /// ended the run.
    pub(crate) async fn stored(self, ports: &RuntimePorts) -> bool {
        match self {
            Self::Stored => true,
            Self::Refused => false,
            Self::Deferred(end) => {
                let stored = match commit_until_stored(&end, ports).await {
                    Ok(()) => true,
                    // An earlier try may have been written although its reply was lost.
                    Err(CommitError::AlreadyTerminal(_)) => is_written(&end, ports).await,
                    Err(_) => false,
                };
                if stored {
                    tracing::info!(
                        run_id = %end.run_id,
                        "the end of the run is stored after a retry"
                    );
                }
                stored
            }
        }
    }
}

/// Notifies the observer of the stored end of an orphaned run: failed with the text `why`, or
/// cancelled without a text.
pub(crate) async fn notify_end(run: &RunRecord, why: Option<&str>, ports: &RuntimePorts) {
    let completion = run.completion.clone();
    let kind = match why {
        Some(error) => LifecycleKind::RunFailed {
            error: error.to_owned(),
            completion,
        },
        None => LifecycleKind::RunCancelled { completion },
    };
    RunLifecycleEvent::of(run, kind)
        .notify(&*ports.observer)
        .await;
}

/// Reports whether the stored run ended as `commit` requested. `false` if it cannot be read.
async fn is_written(commit: &RunCommit, ports: &RuntimePorts) -> bool {
    let status = commit.end.as_ref().map(|end| end.status);
    match ports.query.get(&commit.run_id, &Owner::None).await {
        Ok(run) => {
            run.is_some_and(|run| run.attempt == commit.attempt && Some(run.status) == status)
        }
        Err(error) => {
            tracing::warn!(
                run_id = %commit.run_id, %error,
                "cannot read whether the end of a run was stored"
            );
            false
        }
    }
}

/// Retries the commit of an end until it is stored, is refused, or the process shuts down. Returns
/// a store error only at shutdown.
pub(crate) async fn commit_until_stored(
    end: &Arc<RunCommit>,
    ports: &RuntimePorts,
) -> Result<(), CommitError> {
    let stop = ports.tasks.token();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                let reason = "the process is shutting down".to_owned();
                return Err(StoreError::Unavailable(reason).into());
            }
            () = tokio::time::sleep(END_RETRY_INTERVAL) => {}
        }
        match ports.commit.commit(Arc::clone(end)).await {
            Err(CommitError::Store(_)) => {}
            ended => return ended,
        }
    }
}

/// Builds the webhook call for a run that no task executed to its end.
pub(crate) fn webhook_of(run: &RunRecord, error: Option<&str>) -> Option<WebhookCall> {
    let error = error.map(|text| RunFailure::new(LOST_ERROR, text).into());
    run.webhook.clone().map(|url| WebhookCall {
        url,
        started_at: run.updated_at,
        values: None,
        error,
    })
}
