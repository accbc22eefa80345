//! A conversation as the responses API has it: a list of items.

use serde_json::{Value, json};

use crate::messages::{Content, Message, MessageKind};
use crate::models::ModelRequest;
use crate::models::http::{Block, Maker, Said, blocks, said, short_id, tool_name};

/// Longer ids of calls are refused.
const LONGEST_ID: usize = 64;

/// The items of `request`, without what the system says. `maker` is whose own items go back.
pub(super) fn items(request: &ModelRequest, maker: Option<&Maker>) -> Vec<Value> {
    let mut items = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match &message.kind {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => {
                let content = parts(&message.content);
                items.extend(
                    (!content.is_empty()).then(|| json!({"role": "user", "content": content})),
                );
            }
            MessageKind::Ai { .. } => items.extend(answer(message, maker)),
            MessageKind::Tool { tool_call_id, .. } => {
                let call = short_id(tool_call_id, LONGEST_ID);
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

/// A result is text, unless there is more than text in it.
fn output(content: &Content) -> Value {
    let parts = parts(content);
    if parts.iter().all(|part| part["type"] == "input_text") {
        json!(content.text())
    } else {
        Value::Array(parts)
    }
}

fn answer(message: &Message, maker: Option<&Maker>) -> Vec<Value> {
    let text = message.content.text();
    let as_item = |part| match part {
        Said::Text(text, _) => (!text.is_empty()).then(
            || json!({"role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        ),
        Said::Call(call, _) => Some(function_call(
            &call.id,
            &call.name,
            json!(call.args).to_string(),
        )),
        Said::Invalid(call) => {
            let arguments = json!({"unreadable_arguments": call.args}).to_string();
            Some(function_call(
                call.id.as_deref().unwrap_or_default(),
                call.name.as_deref().unwrap_or_default(),
                arguments,
            ))
        }
        Said::Own(item) => Some(item),
        Said::Thought(..) => None,
    };
    let mut items: Vec<Value> = said(message, &text, maker)
        .into_iter()
        .filter_map(as_item)
        .collect();
    // Reasoning that nothing came of is refused.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
    items
}

fn function_call(id: &str, name: &str, arguments: String) -> Value {
    json!({"type": "function_call", "call_id": short_id(id, LONGEST_ID), "name": tool_name(name), "arguments": arguments})
}
