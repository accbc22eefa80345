//! Errors of checkpoint stores.

use crate::definition::StoreError;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::json_size::TooLarge;

/// Reason why a checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store failed, or is temporarily unavailable.
    #[error("checkpoints: {0}")]
    Store(#[from] StoreError),
    /// No storage space is left.
    #[error("no storage space left for checkpoints")]
    StorageFull,
    /// A stored checkpoint cannot be decoded.
    #[error("checkpoint {id} of thread {thread_id} is damaged: {reason}")]
    Damaged {
        /// Id of the thread.
        thread_id: ThreadId,
        /// Id of the checkpoint.
        id: String,
        /// Description of the damage.
        reason: String,
    },
}

/// Reason why an external update was rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// The thread has an unfinished run.
    #[error("run {run_id} is in flight on thread {thread_id}")]
    Busy {
        /// Id of the thread.
        thread_id: ThreadId,
        /// Id of the run.
        run_id: RunId,
    },
    /// The thread has changed since the write was planned; read it again.
    #[error("thread {0} was changed in the meantime")]
    Moved(ThreadId),
    /// The thread does not exist.
    #[error("there is no thread {0}")]
    NoThread(ThreadId),
    /// The metadata would be larger than its limit.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The checkpoint could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}
