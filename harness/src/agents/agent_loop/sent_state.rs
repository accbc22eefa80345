//! Input that a command sends to the model instead of the thread's state.

use std::sync::Arc;

use serde_json::Value;

use crate::messages::Message;
use crate::runtime::agent::{AgentError, RunContext};
use crate::state::{StateUpdate, ThreadState};

/// Builds the state that a command sends to the model instead of the thread's state.
pub(super) fn sent_state(input: &Value, ctx: &RunContext) -> Result<Arc<ThreadState>, AgentError> {
    let items = input
        .get("messages")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let messages: Result<Vec<Message>, _> = items.into_iter().map(Message::coerce).collect();
    let messages = messages.map_err(|error| {
        AgentError::Resume(format!(
            "the input that was sent to the model is not a list of messages: {error}"
        ))
    })?;
    let mut state = ThreadState::default();
    state.apply(StateUpdate::messages(messages), &*ctx.ids)?;
    Ok(Arc::new(state))
}
