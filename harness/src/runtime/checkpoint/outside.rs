//! A change of a thread from outside a run: a checkpoint and the thread's row, planned on what was read.

use super::{CheckpointError, CheckpointWrite};
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::runtime::runs::ThreadStatus;

/// A checkpoint to be written from outside a run, and what becomes of its thread.
#[derive(Debug, Clone)]
pub struct OutsideWrite {
    /// The checkpoint. The thread was changed at its moment.
    pub write: CheckpointWrite,
    /// The thread's newest checkpoint when the write was planned.
    pub newest: Option<CheckpointId>,
    /// The last place of the thread's log when the write was planned.
    pub log_tail: u64,
    /// The thread's title; `None` when there is none.
    pub title: Option<String>,
    /// The thread's status.
    pub status: ThreadStatus,
}

/// Why a change from outside a run was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PutError {
    /// A run holds the thread.
    #[error("run {run_id} is in flight on thread {thread_id}")]
    Busy {
        /// The thread.
        thread_id: ThreadId,
        /// The run.
        run_id: RunId,
    },
    /// The thread is no longer as it was when the write was planned; read it again.
    #[error("thread {0} was changed meanwhile")]
    Moved(ThreadId),
    /// There is no such thread.
    #[error("there is no thread {0}")]
    NoThread(ThreadId),
    /// It could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}
