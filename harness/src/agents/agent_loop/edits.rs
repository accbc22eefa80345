//! Writes calls that a person edited into the answer that asked for them, so that the conversation says what was done.

use serde_json::{Value, json};

use super::calls::DueCall;
use crate::messages::{Message, MessageBody, MessageKind, ToolCall};

/// The last answer with the edited calls in place of the model's; `None` when no call of it was edited.
pub(super) fn written(messages: &[Message], calls: &[DueCall]) -> Option<Message> {
    let edited: Vec<&ToolCall> = calls
        .iter()
        .filter(|due| due.is_edited())
        .map(|due| &*due.call)
        .collect();
    let answer = messages
        .iter()
        .rfind(|message| message.is_ai())
        .filter(|_| !edited.is_empty())?;
    let written = answer.with(|body| edited.iter().for_each(|call| write(body, call)));
    (written.kind != answer.kind).then_some(written)
}

fn write(body: &mut MessageBody, edited: &ToolCall) {
    let MessageKind::Ai { tool_calls, .. } = &mut body.kind else {
        return;
    };
    tool_calls
        .iter_mut()
        .filter(|call| call.id == edited.id)
        .for_each(|call| call.clone_from(edited));
    // Messages of other programs carry the provider's own form beside it.
    let raw = body
        .additional_kwargs
        .get_mut("tool_calls")
        .and_then(Value::as_array_mut);
    for call in raw
        .into_iter()
        .flatten()
        .filter(|call| call["id"] == *edited.id)
    {
        call["function"] = json!({ "name": edited.name, "arguments": Value::Object(edited.args.clone()).to_string() });
    }
}
