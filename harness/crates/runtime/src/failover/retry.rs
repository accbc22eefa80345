//! Retries poisoned runs: queues a new run with the stored request.

use chrono::TimeDelta;
use serde_json::Value;

use crate::checkpoint::{
    CheckpointError, CheckpointMeta, CheckpointSource, Checkpointer, HistoryQuery,
};
use crate::definition::{
    IfNotExists, MultitaskStrategy, RunInput, RunRecord, RunScope, RunStatus, StopReason,
    StoreError, UserRunLimits,
};
use crate::execution::{MAX_SUCCESSORS, START};
use crate::ports::{AdmitError, NewRun, RunCreateStore, RunQueryStore, StoredRunRequest};
use deerflow_core::actor_context::Owner;
use deerflow_core::clock::Clock;
use deerflow_core::ids::{IdSource, RunId, ThreadId};

/// Metadata key of a retrying run: the id of the run that it retries.
pub const RETRIED_FROM: &str = "retried_from";

/// Delay of the new run. A delayed run is queued also on an idle thread, so that a process with a
/// lease starts it.
const QUEUE_DELAY: TimeDelta = TimeDelta::milliseconds(1);

/// Ports by which a poisoned run is retried, without a runtime.
#[derive(Debug, Clone, Copy)]
pub struct RetryPorts<'a> {
    /// Reads the run and its stored request.
    pub query: &'a dyn RunQueryStore,
    /// Admits the new run.
    pub create: &'a dyn RunCreateStore,
    /// Reads the progress of the run.
    pub checkpointer: &'a dyn Checkpointer,
    /// Generates the id of the new run.
    pub ids: &'a dyn IdSource,
    /// Time of the new run.
    pub clock: &'a dyn Clock,
}

/// Reason why a run was not retried. No data was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetryError {
    /// The run does not exist.
    #[error("there is no run {0}: it never existed, or it was deleted with its thread")]
    NotFound(RunId),
    /// The run did not exhaust its attempts.
    #[error("run {run_id} is not poisoned: its status is {status}")]
    NotPoisoned {
        /// Id of the run.
        run_id: RunId,
        /// Status of the run.
        status: RunStatus,
    },
    /// The request of the run is not stored.
    #[error(
        "the request of run {0} is not stored: its temporary thread was deleted, or an earlier \
         version ended the run"
    )]
    NoRequest(RunId),
    /// The thread of the run was deleted.
    #[error("thread {0} of the run was deleted")]
    ThreadDeleted(ThreadId),
    /// The run made progress, and its thread was changed since by other runs or by an update.
    #[error(
        "thread {0} was changed after the run, so the run cannot continue from its last \
         checkpoint; send its message again"
    )]
    ThreadChanged(ThreadId),
    /// The run made progress, and another run of its thread is unfinished.
    #[error(
        "run {active} of thread {thread_id} is unfinished and changes the state from which the \
         retried run would continue; cancel it first"
    )]
    ThreadBusy {
        /// Id of the thread.
        thread_id: ThreadId,
        /// Id of the unfinished run.
        active: RunId,
    },
    /// The new run was not admitted.
    #[error(transparent)]
    Refused(AdmitError),
    /// The progress of the run cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Start of the new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryStart {
    /// The thread has no state of the run: the new run applies the input.
    Input,
    /// The thread has the messages of the input and no other state of the run.
    InputWithoutMessages,
    /// The new run continues from the newest checkpoint, which the run wrote.
    Continue,
    /// The thread has state of the run, followed by state that the run did not write.
    Impossible,
}

/// Decides how the new run starts. `newest` are the newest checkpoints of the thread, newest first.
fn decide_start(run: &RunId, newest: &[CheckpointMeta]) -> RetryStart {
    let is_own = |meta: &CheckpointMeta| meta.run_id.as_ref() == Some(run);
    let Some(last) = newest.first().filter(|meta| is_own(meta)) else {
        return if newest.iter().any(is_own) {
            RetryStart::Impossible
        } else {
            RetryStart::Input
        };
    };
    if last.next.iter().any(|task| task.name == START) {
        RetryStart::Input
    } else if last.source == CheckpointSource::Input && last.next.is_empty() {
        // The end of the run restored the messages of its input.
        RetryStart::InputWithoutMessages
    } else {
        RetryStart::Continue
    }
}

/// Queues a new run with the stored request of a poisoned run, on the same thread and for the same
/// actor. A run that made progress continues from its last checkpoint; then the thread must be
/// unchanged since. Otherwise the new run applies the input, after the unfinished runs of the
/// thread. The pending tool calls of the checkpoint are executed again.
pub async fn retry_poisoned(run: &RunId, ports: RetryPorts<'_>) -> Result<RunRecord, RetryError> {
    let Some(record) = ports.query.get(run, &Owner::None).await? else {
        return Err(RetryError::NotFound(run.clone()));
    };
    if !is_poisoned(&record) {
        return Err(RetryError::NotPoisoned {
            run_id: record.run_id,
            status: record.status,
        });
    }
    let Some(stored) = ports.query.stored_request(run).await? else {
        return Err(RetryError::NoRequest(record.run_id));
    };
    let newest = HistoryQuery {
        limit: MAX_SUCCESSORS,
        ..HistoryQuery::default()
    };
    let newest = ports.checkpointer.list_meta(&record.thread_id, &newest);
    let start = decide_start(run, &newest.await?);
    if start == RetryStart::Impossible {
        return Err(RetryError::ThreadChanged(record.thread_id));
    }
    let now = ports.clock.now();
    let run_id = ports.ids.run_id();
    let recipe = retry_request(&record, stored, start, run_id.clone());
    let admitted = ports.create.admit(NewRun {
        run_id,
        thread_id: record.thread_id.clone(),
        user_id: record.user_id.clone(),
        recipe: recipe.into(),
        owner: ports.ids.node_id(),
        most_waiting: usize::MAX,
        // An operator's command is not limited. The start of the run is.
        per_user: UserRunLimits::default(),
        created_at: now + QUEUE_DELAY,
        at: now,
    });
    match admitted.await {
        Ok(admitted) => Ok(admitted.run),
        Err(AdmitError::ThreadNotFound(thread)) => Err(RetryError::ThreadDeleted(thread)),
        Err(AdmitError::ThreadBusy { thread_id, active }) => {
            Err(RetryError::ThreadBusy { thread_id, active })
        }
        Err(AdmitError::Store(error)) => Err(error.into()),
        Err(error) => Err(RetryError::Refused(error)),
    }
}

fn is_poisoned(run: &RunRecord) -> bool {
    run.status == RunStatus::Error
        && run.stop_reason.as_deref() == Some(StopReason::AttemptsExhausted.as_str())
}

/// Builds the request of the new run.
fn retry_request(
    run: &RunRecord,
    mut stored: StoredRunRequest,
    start: RetryStart,
    run_id: RunId,
) -> StoredRunRequest {
    let request = &mut stored.spec;
    request.run_id = Some(run_id);
    request.scope = RunScope::Stateful {
        thread_id: run.thread_id.clone(),
        if_not_exists: IfNotExists::Reject,
    };
    // The stored request does not have the fields of the record.
    request.metadata.clone_from(&run.metadata);
    let retried = Value::from(run.run_id.as_str());
    request.metadata.insert(RETRIED_FROM.to_owned(), retried);
    request.presentation.request_echo = run.kwargs.clone();
    // The first request used its key.
    request.request = None;
    request.multitask = MultitaskStrategy::Enqueue;
    if start != RetryStart::Input {
        // No other run may change the state before the new run continues from it.
        request.multitask = MultitaskStrategy::Reject;
        request.checkpoint = None;
        // The input is restored from the echo if the new run is poisoned too.
        let mut echo = run.kwargs.to_value();
        if let Some(input) = echo.get_mut("input") {
            *input = Value::Null;
        }
        request.presentation.request_echo = echo.into();
    }
    match (start, &mut request.input) {
        (RetryStart::InputWithoutMessages, RunInput::Update(update)) => update.messages.clear(),
        (RetryStart::Continue, input) => *input = RunInput::Continue,
        _ => {}
    }
    stored
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
