//! What callers of the facade are told when a verb does not work.

use super::status::RunStatus;
use super::store::{AdmitError, StoreError};
use crate::ids::{CheckpointId, RunId};
use crate::runtime::agent::UnknownAssistant;
use crate::runtime::checkpoint::CheckpointError;
use crate::runtime::stream_bridge::BridgeError;
use crate::state::StateError;

/// Why a verb was refused or failed. Nothing has changed unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was not admitted.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// The assistant cannot be had.
    #[error(transparent)]
    Assistant(#[from] UnknownAssistant),
    /// No such run, or somebody else's.
    #[error("run {0} not found")]
    NotFound(RunId),
    /// The run is over.
    #[error("run {run_id} is not cancellable (status: {status})")]
    NotCancellable {
        /// The run.
        run_id: RunId,
        /// How it ended.
        status: RunStatus,
    },
    /// The run is still active, so it cannot be deleted.
    #[error("run {0} is still active")]
    StillActive(RunId),
    /// No such checkpoint on the thread.
    #[error("checkpoint {0} not found")]
    CheckpointNotFound(CheckpointId),
    /// The input has more messages than one request may bring.
    #[error("the request has {count} messages; one request may bring {limit}")]
    TooManyMessages {
        /// The number of messages in the request.
        count: usize,
        /// The configured limit.
        limit: usize,
    },
    /// The input cannot become part of the thread's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The process is shutting down and takes no new runs.
    #[error("the runtime is shutting down")]
    ShuttingDown,
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint store failed.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The stream bridge failed.
    #[error(transparent)]
    Bridge(#[from] BridgeError),
}
