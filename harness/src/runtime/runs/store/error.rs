//! What can go wrong at a store.

use super::requests::Known;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::NoActor;

/// The store itself failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database or file system answered with an error.
    #[error("the store failed: {0}")]
    Failed(String),
    /// The store did not answer in time, or is not reachable.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// No room left, or the store is read-only.
    #[error("the store cannot be written: {0}")]
    NotWritable(String),
    /// An owner was required and none is bound.
    #[error(transparent)]
    NoActor(#[from] NoActor),
}

/// Why a run was not admitted. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// The thread has an active run.
    #[error("thread {thread_id} already has an active run")]
    ThreadBusy {
        /// The thread.
        thread_id: ThreadId,
        /// The run in its slot.
        active: RunId,
    },
    /// Too many runs wait on the thread.
    #[error("too many runs wait on thread {0}")]
    QueueFull(ThreadId),
    /// No such thread, or somebody else's.
    #[error("thread {0} not found")]
    ThreadNotFound(ThreadId),
    /// The request's key is known.
    #[error("a request of this key came before")]
    KnownRequest(Known),
    /// The run id is taken.
    #[error("run {0} already exists")]
    RunExists(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a write of a running run was refused. Nothing of it was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The run is already over; terminal once.
    #[error("run {0} is already over")]
    AlreadyTerminal(RunId),
    /// A newer attempt owns the run.
    #[error("attempt {attempt} of run {run_id} no longer owns it")]
    OwnershipLost {
        /// The run.
        run_id: RunId,
        /// Who tried to write.
        attempt: u32,
    },
    /// The run was deleted.
    #[error("run {0} no longer exists")]
    Gone(RunId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
