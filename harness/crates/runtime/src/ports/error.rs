//! Errors of admissions and commits.

use super::request_store::KeyState;
use crate::definition::StoreError;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::quota::QuotaExceeded;

/// Reason why a run was not admitted. No data was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The thread has an active run.
    #[error("thread {thread_id} already has an active run")]
    ThreadBusy {
        /// Id of the thread.
        thread_id: ThreadId,
        /// Id of the active run.
        active: RunId,
    },
    /// The thread's queue is full.
    #[error("the queue of thread {0} is full")]
    QueueFull(ThreadId),
    /// The user has too many queued runs, or the run needs data that exceeds a quota.
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    /// The thread does not exist or belongs to another user.
    #[error("thread {0} not found")]
    ThreadNotFound(ThreadId),
    /// The request's key was used before.
    #[error("the idempotency key was used before")]
    KnownRequest(KeyState),
    /// A run with this id exists.
    #[error("run {0} already exists")]
    RunExists(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a commit was rejected. No data was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The run has already ended.
    #[error("run {0} is already over")]
    AlreadyTerminal(RunId),
    /// A newer attempt owns the run.
    #[error("attempt {attempt} of run {run_id} no longer owns it")]
    OwnershipLost {
        /// Id of the run.
        run_id: RunId,
        /// Attempt that tried to write.
        attempt: u32,
    },
    /// The run was deleted.
    #[error("run {0} no longer exists")]
    Gone(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
