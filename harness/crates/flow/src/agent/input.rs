//! The input of a run as channel values, and the messages of the thread for agents that see them.

use std::sync::Arc;

use deerflow_core::state::ThreadState;
use deerflow_runtime::agent::InputError;
use serde_json::{Map, Value};

use crate::adapter::{TurnMessage, TurnRole};
use crate::machine::RunInput;

/// Maximum messages of a thread that agents may see.
const MAX_THREAD_MESSAGES: usize = 200;

/// Converts a client's input: `messages` stays, all other keys become the channel `input`. A
/// `userPrompt` without messages becomes a human message, so that the conversation has it.
pub(super) fn channel_values(
    mut input: Map<String, Value>,
) -> Result<Map<String, Value>, InputError> {
    let messages = input
        .remove("messages")
        .filter(|messages| !messages.is_null());
    let prompt = match input.get("userPrompt") {
        None | Some(Value::Null) => None,
        Some(Value::String(prompt)) => Some(prompt.clone()),
        Some(other) => {
            return Err(InputError::Invalid {
                path: vec!["userPrompt".to_owned()],
                reason: "userPrompt must be text".to_owned(),
                value: other.clone(),
            });
        }
    };
    let rest = Value::Object(input);
    if let Err(error) = RunInput::read(rest.clone()) {
        return Err(InputError::Invalid {
            path: Vec::new(),
            reason: error.message,
            value: Value::Null,
        });
    }
    let mut values = Map::new();
    if let Some(messages) = messages.or_else(|| prompt.map(Value::String)) {
        values.insert("messages".to_owned(), messages);
    }
    values.insert("input".to_owned(), rest);
    Ok(values)
}

/// Returns the input of a run from its first state: the channel `input`, with the text of the last
/// human message as the prompt unless a prompt is given.
pub(super) fn run_input(state: &ThreadState) -> RunInput {
    let value = state.channel("input").cloned().unwrap_or(Value::Null);
    let input = RunInput::read(value).unwrap_or_default();
    if !input.user_prompt().is_empty() {
        return input;
    }
    match state
        .messages()
        .iter()
        .rev()
        .find(|message| message.is_human())
    {
        Some(message) => input.with_prompt(&message.content.text()),
        None => input,
    }
}

/// Returns the messages before the input of this run, the oldest first.
pub(super) fn thread_messages(state: &ThreadState) -> Arc<[TurnMessage]> {
    let messages = state.messages();
    let input = messages
        .iter()
        .rposition(|message| message.is_human())
        .unwrap_or(messages.len());
    let earlier = &messages[..input];
    earlier[earlier.len().saturating_sub(MAX_THREAD_MESSAGES)..]
        .iter()
        .filter_map(|message| {
            let role = match (message.is_human(), message.is_ai()) {
                (true, _) => TurnRole::User,
                (_, true) => TurnRole::Assistant,
                _ => return None,
            };
            Some(TurnMessage {
                role,
                content: message.content.text(),
            })
        })
        .collect()
}
