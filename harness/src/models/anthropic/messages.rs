//! A conversation as Anthropic has it: turns of blocks, tool results among the user's.

use serde_json::{Map, Value, json};

use super::{PROVIDER, SIGNATURE};
use crate::messages::{Content, Message, MessageKind, ToolStatus};
use crate::models::ModelRequest;
use crate::models::http::{Block, Image, Said, blocks, push_turn, said, wire_id};

/// The turns of `request`, without what the system says.
pub(super) fn turns(request: &ModelRequest) -> Vec<Value> {
    let mut turns = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match &message.kind {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => push_turn(&mut turns, "user", "content", content(&message.content)),
            MessageKind::Ai { .. } => push_turn(&mut turns, "assistant", "content", answer(message)),
            MessageKind::Tool { tool_call_id, status, .. } => {
                push_turn(&mut turns, "user", "content", vec![result(tool_call_id, &message.content, *status)]);
            }
        }
    }
    turns
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn content(content: &Content) -> Vec<Value> {
    let as_block = |block| match block {
        Block::Text(said) => Some(text(said)),
        Block::Image(image) => Some(self::image(&image)),
        Block::Model(_) => None,
        Block::Other(other) => other.is_object().then(|| other.clone()),
    };
    blocks(content).into_iter().filter_map(as_block).collect()
}

fn image(image: &Image<'_>) -> Value {
    let source = match image {
        Image::Address(url) => json!({"type": "url", "url": url}),
        Image::Bytes { mime, base64 } => json!({"type": "base64", "media_type": mime, "data": base64}),
    };
    json!({"type": "image", "source": source})
}

fn result(call: &str, said: &Content, status: ToolStatus) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": wire_id(call)});
    let content = content(said);
    if !content.is_empty() {
        block["content"] = Value::Array(content);
    }
    if status == ToolStatus::Error {
        block["is_error"] = json!(true);
    }
    block
}

fn answer(message: &Message) -> Vec<Value> {
    let whole = message.content.text();
    // Answers that other software streamed keep their thoughts among their blocks.
    let thoughts = blocks(&message.content).into_iter().filter_map(|block| match block {
        Block::Model(block) => sent_thought(block),
        _ => None,
    });
    let own = said(message, &whole, PROVIDER).into_iter().filter_map(|part| match part {
        Said::Text(said, _) => (!said.is_empty()).then(|| text(said)),
        Said::Thought(thought, signed) => Some(json!({"type": "thinking", "thinking": thought, SIGNATURE: signed.get(SIGNATURE)})),
        Said::Own(block) => Some(block),
        Said::Call(call, _) => Some(tool_use(&call.id, &call.name, &call.args)),
        Said::Invalid(call) => {
            let args = Map::from_iter([("unreadable_arguments".to_owned(), json!(call.args))]);
            Some(tool_use(call.id.as_deref().unwrap_or_default(), call.name.as_deref().unwrap_or_default(), &args))
        }
    });
    let mut blocks: Vec<Value> = thoughts.chain(own).collect();
    // Thoughts that nothing came of are refused.
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    blocks
}

/// Whether the block is one of the model's thoughts, readable or not.
pub(super) fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn tool_use(id: &str, name: &str, input: &Map<String, Value>) -> Value {
    json!({"type": "tool_use", "id": wire_id(id), "name": name, "input": input})
}

/// A thought as it may be sent again: only with what signs it.
fn sent_thought(block: &Value) -> Option<Value> {
    match block.get("type")?.as_str()? {
        "thinking" => Some(json!({"type": "thinking", "thinking": block.get("thinking")?, "signature": block.get("signature")?})),
        "redacted_thinking" => Some(json!({"type": "redacted_thinking", "data": block.get("data")?})),
        _ => None,
    }
}
