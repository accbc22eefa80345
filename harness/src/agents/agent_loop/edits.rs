//! Writes calls that the user edited into the answer of the model, so that the conversation shows
//! the executed calls.

use serde_json::{Value, json};

use super::calls::PendingCall;
use crate::messages::{Message, MessageBody, MessageKind, ToolCall};

/// Returns the last answer in which edited calls replace those of the model; `None` if no call was
/// edited.
pub(super) fn with_edited_calls(messages: &[Message], calls: &[PendingCall]) -> Option<Message> {
    let edited: Vec<&ToolCall> = calls
        .iter()
        .filter(|pending| pending.is_edited())
        .map(|pending| &*pending.call)
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
    // Messages of other clients also contain the calls in the provider's format.
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
