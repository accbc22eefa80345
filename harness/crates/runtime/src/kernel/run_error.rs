//! Errors of the facade.

use crate::agent::UnknownAssistant;
use crate::checkpoint::CheckpointError;
use crate::definition::{RunStatus, StoreError};
use crate::ports::AdmitError;
use crate::stream_bridge::BridgeError;
use deerflow_core::ids::{CheckpointId, RunId};
use deerflow_core::state::StateError;

/// Error of a facade call. The call had no effect unless the variant states otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was not admitted.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// The assistant does not exist or cannot be assembled.
    #[error(transparent)]
    Assistant(#[from] UnknownAssistant),
    /// The run does not exist or belongs to another user.
    #[error("run {0} not found")]
    NotFound(RunId),
    /// The run has ended and cannot be cancelled.
    #[error("run {run_id} is not cancellable (status: {status})")]
    NotCancellable {
        /// Id of the run.
        run_id: RunId,
        /// Terminal status of the run.
        status: RunStatus,
    },
    /// The run is active and cannot be deleted.
    #[error("run {0} is still active")]
    StillActive(RunId),
    /// The thread has no such checkpoint.
    #[error("checkpoint {0} not found")]
    CheckpointNotFound(CheckpointId),
    /// The input has more messages than one request may contain.
    #[error("the request has {count} messages; one request may bring {limit}")]
    TooManyMessages {
        /// Number of messages in the request.
        count: usize,
        /// Configured limit.
        limit: usize,
    },
    /// The input cannot be merged into the thread's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// The process shuts down and accepts no new runs.
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
