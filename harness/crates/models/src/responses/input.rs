//! Converts a conversation to the format of the responses API: a list of items.

use serde_json::{Value, json};

use crate::ModelRequest;
use crate::http::{Block, ModelOrigin, ReplayPart, blocks, replay_parts, short_id, tool_name};
use deerflow_core::messages::{Content, Message, MessageKind};

/// Maximum length of a call's id that the API accepts.
const MAX_ID_CHARS: usize = 64;

/// Returns the items of `request`, without system texts. Provider-specific items are sent back if
/// they are from `origin`.
pub(super) fn items(request: &ModelRequest, origin: Option<&ModelOrigin>) -> Vec<Value> {
    let mut items = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message.kind() {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => {
                let content = parts(&message.sent_content());
                items.extend(
                    (!content.is_empty()).then(|| json!({"role": "user", "content": content})),
                );
            }
            MessageKind::Ai { .. } => items.extend(answer(message, origin)),
            MessageKind::Tool { tool_call_id, .. } => {
                let call = short_id(tool_call_id, MAX_ID_CHARS);
                items.push(json!({"type": "function_call_output", "call_id": call, "output": output(&message.content)}));
            }
        }
    }
    items
}

fn parts(content: &Content) -> Vec<Value> {
    let as_part = |block| match block {
        Block::Text(text) => Some(json!({"type": "input_text", "text": text})),
        Block::Image(image) => Some(json!({"type": "input_image", "image_url": image.address()})),
        Block::Model(_) => None,
        Block::Other(other) => other.is_object().then(|| other.clone()),
    };
    blocks(content).into_iter().filter_map(as_part).collect()
}

/// Returns the output of a tool: text, or a list of parts if it contains more than text.
fn output(content: &Content) -> Value {
    let parts = parts(content);
    if parts.iter().all(|part| part["type"] == "input_text") {
        json!(content.text())
    } else {
        Value::Array(parts)
    }
}

fn answer(message: &Message, origin: Option<&ModelOrigin>) -> Vec<Value> {
    let text = message.content.text();
    let as_item = |part| match part {
        ReplayPart::Text(text, _) => (!text.is_empty()).then(
            || json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        ),
        ReplayPart::Call(call, _) => Some(function_call(
            &call.id,
            &call.name,
            json!(call.args).to_string(),
        )),
        ReplayPart::Invalid(call) => {
            let arguments = json!({"unreadable_arguments": call.args}).to_string();
            Some(function_call(
                call.id.as_deref().unwrap_or_default(),
                call.name.as_deref().unwrap_or_default(),
                arguments,
            ))
        }
        ReplayPart::ProviderSpecific(item) => Some(item),
        ReplayPart::Thought(..) => None,
    };
    let mut items: Vec<Value> = replay_parts(message, &text, origin)
        .into_iter()
        .filter_map(as_item)
        .collect();
    // The API rejects an answer that ends with reasoning.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

fn function_call(id: &str, name: &str, arguments: String) -> Value {
    json!({"type": "function_call", "call_id": short_id(id, MAX_ID_CHARS), "name": tool_name(name), "arguments": arguments})
}
