//! An external update of a thread's state, and the errors of its write.

use harness::runtime::checkpoint::PutError;
use harness::runtime::runs::GotoTarget;
use serde_json::{Map, Value};

use crate::error::ApiError;

/// Values, the node they are attributed to, and targets in addition to its successors.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) values: Map<String, Value>,
    pub(super) as_node: Option<String>,
    pub(super) goto: Vec<GotoTarget>,
}

/// The thread has an active run.
pub(super) fn busy() -> ApiError {
    ApiError::Conflict(
        "Thread has a run in flight. Update state after the run finishes.".to_owned(),
    )
}

/// Converts the error of a rejected write.
pub(super) fn refused(error: PutError) -> ApiError {
    match error {
        PutError::Busy { .. } => busy(),
        PutError::NoThread(thread) => ApiError::ThreadNotFound(thread.to_string()),
        PutError::TooLarge(refused) => refused.into(),
        PutError::Checkpoint(error) => error.into(),
        other => ApiError::Internal(other.to_string()),
    }
}
