//! A conversation as the responses API has it: a list of items.

use serde_json::{Value, json};

use crate::messages::{Content, Message, MessageKind};
use crate::models::ModelRequest;
use crate::models::http::{Block, Said, blocks, said};

/// The items of `request`, without what the system says. `provider` is whose own items go back.
pub(super) fn items(request: &ModelRequest, provider: &str) -> Vec<Value> {
    let mut items = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match &message.kind {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => {
                let content = parts(&message.content);
                items.extend((!content.is_empty()).then(|| json!({"role": "user", "content": content})));
            }
            MessageKind::Ai { .. } => items.extend(answer(message, provider)),
            MessageKind::Tool { tool_call_id, .. } => {
                items.push(json!({"type": "function_call_output", "call_id": tool_call_id, "output": output(&message.content)}));
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

/// A result is text, unless there is more than text in it.
fn output(content: &Content) -> Value {
    let parts = parts(content);
    if parts.iter().all(|part| part["type"] == "input_text") { json!(content.text()) } else { Value::Array(parts) }
}

fn answer(message: &Message, provider: &str) -> Vec<Value> {
    let text = message.content.text();
    let as_item = |part| match part {
        Said::Text(text, _) => (!text.is_empty()).then(|| json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]})),
        Said::Call(call, _) => Some(function_call(&call.id, &call.name, json!(call.args).to_string())),
        Said::Invalid(call) => {
            let arguments = json!({"unreadable_arguments": call.args}).to_string();
            Some(function_call(call.id.as_deref().unwrap_or_default(), call.name.as_deref().unwrap_or_default(), arguments))
        }
        Said::Own(item) => Some(item),
        Said::Thought(..) => None,
    };
    said(message, &text, provider).into_iter().filter_map(as_item).collect()
}

fn function_call(id: &str, name: &str, arguments: String) -> Value {
    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
}
