//! Port that commits the progress and the end of runs.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use super::error::CommitError;
use super::run_event_store::NewRunEvent;
use super::webhook_outbox::WebhookCall;
use crate::agent::CallEntry;
use crate::checkpoint::CheckpointWrite;
use crate::definition::{RunCompletionData, RunStatus, StopReason, ThreadStatus};
use crate::user_memory::MemoryUpdate;
use deerflow_core::ids::{RunId, ThreadId};

/// End of a run, written once.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// Terminal status.
    pub status: RunStatus,
    /// Error text of a failed run.
    pub error: Option<String>,
    /// Class of that error.
    pub error_name: Option<String>,
    /// Text of the reason of an early stop: a [`StopReason`](crate::runs::StopReason).
    pub stop_reason: Option<String>,
    /// Usage and message totals.
    pub completion: RunCompletionData,
    /// Status of the thread if no other run is queued on it. Ignored if `discard_checkpoints` is
    /// set.
    pub thread_status: ThreadStatus,
    /// Title of the thread, if the state has one.
    pub title: Option<String>,
    /// Webhook call, stored in the outbox in the same transaction.
    pub webhook: Option<WebhookCall>,
    /// Final state as JSON, for a repeated request after the thread was deleted. Stored with the
    /// request key of the run.
    pub kept_values: Option<Bytes>,
    /// `true` to delete the run's checkpoints, as after a rollback. The thread's status then
    /// follows from the newest remaining checkpoint.
    pub discard_checkpoints: bool,
    /// `true` to delete the run's ledger entries, if it may have any.
    pub forget_calls: bool,
}

impl RunEnd {
    /// Reports whether the run is poisoned: it exhausted its attempts. The store retains its stored
    /// request, so that an operator can retry it.
    pub fn is_poisoned(&self) -> bool {
        self.status == RunStatus::Error
            && self.stop_reason.as_deref() == Some(StopReason::AttemptsExhausted.as_str())
    }
}

/// Changes of a run that become durable together.
#[derive(Debug, Clone)]
pub struct RunCommit {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Attempt that writes.
    pub attempt: u32,
    /// Number of the commit within its attempt, increasing. A commit that is sent repeatedly is
    /// written once. A repeated commit must be unchanged, and must be sent before later ones. A
    /// commit with number 0 is written each time.
    pub batch: u64,
    /// New status that is not terminal. A change to pending increases the attempt by one, so that
    /// writes of the former owner are rejected.
    pub advance: Option<RunStatus>,
    /// `true` if a change to pending counts as a loss, like a takeover.
    pub is_loss: bool,
    /// Journal events, in order.
    pub events: Vec<NewRunEvent>,
    /// Checkpoints, in order.
    pub checkpoints: Vec<CheckpointWrite>,
    /// Ledger entries of calls, in order.
    pub calls: Vec<CallEntry>,
    /// Usage and message totals so far; later attempts continue from them.
    pub so_far: Option<Box<RunCompletionData>>,
    /// Pending update of a user memory, at most one per commit, registered for the thread as by
    /// [`UserMemoryStore::note`](crate::user_memory::UserMemoryStore::note). Ignored by a store
    /// without user memories, and at the end of a temporary thread.
    pub memory_update: Option<Box<MemoryUpdate>>,
    /// End of the run.
    pub end: Option<RunEnd>,
    /// Current time.
    pub at: DateTime<Utc>,
}

impl RunCommit {
    /// Creates an empty commit.
    pub fn new(run_id: RunId, thread_id: ThreadId, attempt: u32, at: DateTime<Utc>) -> Self {
        let (events, checkpoints, calls) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            run_id,
            thread_id,
            attempt,
            batch: 0,
            advance: None,
            is_loss: false,
            events,
            checkpoints,
            calls,
            so_far: None,
            memory_update: None,
            end: None,
            at,
        }
    }

    /// Changes the commit so that it also releases the run to other processes.
    #[must_use]
    pub fn releasing(self) -> Self {
        Self {
            advance: Some(RunStatus::Pending),
            ..self
        }
    }

    /// Changes the commit so that it releases the run and counts a loss: the attempt did not return.
    #[must_use]
    pub fn releasing_as_lost(self) -> Self {
        Self {
            is_loss: true,
            ..self.releasing()
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `releasing`")]
    #[must_use]
    pub fn giving_back(self) -> Self {
        self.releasing()
    }
}

/// Commits the progress of runs: events, checkpoints, calls and status in one transaction. Commits
/// of other attempts than the owner's are rejected.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_core::ids::{RunId, ThreadId};
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{RunCommit, RunCommitStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = InMemoryStores::new();
/// let (run, thread) = (RunId::parse("r1")?, ThreadId::parse("t1")?);
/// let commit = RunCommit::new(run, thread, 1, DateTime::UNIX_EPOCH);
/// // The run was not admitted, so the commit is rejected.
/// assert!(store.commit(commit.into()).await.is_err());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunCommitStore: Send + Sync + std::fmt::Debug {
    /// Makes the whole commit durable, or no part of it. When a commit with an end returns, the
    /// thread is free; it stays `busy` if it has other unfinished runs. A temporary thread is
    /// deleted with the last end, and with it the content of the run: its `kwargs` become `{}` and
    /// its completion has only numbers.
    ///
    /// The end removes the stored request of the run, except that of a
    /// [poisoned](RunEnd::is_poisoned) run whose thread remains.
    ///
    /// A numbered commit whose batch is not greater than the last one of this attempt was written
    /// before, although the caller received no confirmation. It has no effect and returns `Ok`,
    /// also if it ended the run. A checkpoint may refer to log positions that are stored, and to
    /// those of messages in the same commit. If it refers to any other position, an earlier commit
    /// is missing, and the whole commit is rejected.
    ///
    /// The commit is shared, because its sender retains it in case it has to be sent again.
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError>;
}
