//! An external update of a thread's state, and the errors of its write.

use harness::ids::IdSource;
use harness::messages::Message;
use harness::runtime::checkpoint::PutError;
use harness::runtime::runs::GotoTarget;
use harness::state::Channels;
use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::requests::{StateValues, coerce_messages, read_values};

/// Location of the values in errors.
pub(super) const LOCATION: &str = "values";

/// Values, the node they are attributed to, and targets in addition to its successors.
#[derive(Debug, Default)]
pub(super) struct Update {
    pub(super) values: Map<String, Value>,
    /// Messages that were read from `values`.
    pub(super) messages: Option<Vec<Message>>,
    pub(super) as_node: Option<String>,
    pub(super) goto: Vec<GotoTarget>,
}

impl Update {
    /// Returns the values as channels of a thread. The messages of an update without a node are
    /// moved out of the values at the first call, because a copy may need much memory; a repeated
    /// attempt shares them. They get their ids before they are shared, for the same reason.
    pub(super) fn read(
        &mut self,
        channels: &Channels,
        dialect: Dialect,
        ids: &dyn IdSource,
    ) -> Result<StateValues, ApiError> {
        let sent = match self.values.get_mut("messages") {
            Some(sent) if self.as_node.is_none() => sent.take(),
            _ => Value::Null,
        };
        let mut values = read_values(self.values.clone(), channels, LOCATION, dialect)?;
        if !sent.is_null() {
            let messages = coerce_messages(sent, LOCATION, dialect)?.into_iter();
            self.messages = Some(messages.map(|message| message.identified(ids)).collect());
        }
        if let Some(messages) = &self.messages {
            values.messages = Some(messages.clone());
        }
        Ok(values)
    }
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
