//! Converts a conversation to Anthropic's format: turns of blocks, with tool results in user turns.

use serde_json::{Map, Value, json};

use super::SIGNATURE;
use crate::ModelRequest;
use crate::http::{
    Block, Image, ModelOrigin, ReplayPart, blocks, ensure_user_first, push_turn, replay_parts,
    tool_name, wire_id,
};
use deerflow_core::messages::{Content, Message, MessageKind, ToolStatus};

/// Returns the turns of `request` to `origin`, without system texts.
pub(super) fn turns(request: &ModelRequest, origin: &ModelOrigin) -> Vec<Value> {
    let mut turns = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match message.kind() {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => push_turn(
                &mut turns,
                "user",
                "content",
                content(&message.sent_content()),
            ),
            MessageKind::Ai { .. } => {
                push_turn(&mut turns, "assistant", "content", answer(message, origin))
            }
            MessageKind::Tool {
                tool_call_id,
                status,
                ..
            } => {
                push_turn(
                    &mut turns,
                    "user",
                    "content",
                    vec![result(tool_call_id, &message.content, *status)],
                );
            }
        }
    }
    ensure_user_first(
        &mut turns,
        "content",
        |text| json!({"type": "text", "text": text}),
    );
    turns
}

/// Returns a text block, or `None` for a blank text, which the API rejects.
fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn content(content: &Content) -> Vec<Value> {
    let as_block = |block| match block {
        Block::Text(body) => text(body),
        Block::Image(image) => Some(self::image(&image)),
        Block::Model(_) => None,
        Block::Other(other) => other.is_object().then(|| other.clone()),
    };
    blocks(content).into_iter().filter_map(as_block).collect()
}

fn image(image: &Image<'_>) -> Value {
    let source = match image {
        Image::Address(url) => json!({"type": "url", "url": url}),
        Image::Bytes { mime, base64 } => {
            json!({"type": "base64", "media_type": mime, "data": base64})
        }
    };
    json!({"type": "image", "source": source})
}

fn result(call: &str, body: &Content, status: ToolStatus) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": wire_id(call)});
    let mut content = content(body);
    if status == ToolStatus::Error {
        // Only a result that contains just text may be marked as an error.
        if content.iter().all(|block| block["type"] == "text") {
            block["is_error"] = json!(true);
        } else {
            content.extend(text("The call failed."));
        }
    }
    if !content.is_empty() {
        block["content"] = Value::Array(content);
    }
    block
}

fn answer(message: &Message, origin: &ModelOrigin) -> Vec<Value> {
    let whole = message.content.text();
    // Other software stores thoughts as content blocks. The model name it stores may have a date
    // appended.
    let named = message
        .response_metadata
        .get("model_name")
        .and_then(Value::as_str);
    let is_own_model = named.is_some_and(|name| name.starts_with(origin.model()));
    let thoughts = blocks(&message.content)
        .into_iter()
        .filter_map(|block| match block {
            Block::Model(block) if is_own_model => resendable_thought(block),
            _ => None,
        });
    let parts = replay_parts(message, &whole, Some(origin))
        .into_iter()
        .filter_map(|part| match part {
            ReplayPart::Text(body, _) => text(body),
            ReplayPart::Thought(thinking_block, signed) => {
                self::thinking_block(&json!(thinking_block), signed.get(SIGNATURE))
            }
            ReplayPart::ProviderSpecific(block) => Some(block),
            ReplayPart::Call(call, _) => Some(tool_use(&call.id, &call.name, &call.args)),
            ReplayPart::Invalid(call) => {
                let args = Map::from_iter([("unreadable_arguments".to_owned(), json!(call.args))]);
                Some(tool_use(
                    call.id.as_deref().unwrap_or_default(),
                    call.name.as_deref().unwrap_or_default(),
                    &args,
                ))
            }
        });
    let mut blocks: Vec<Value> = thoughts.chain(parts).collect();
    // The API rejects an answer that ends with a thought.
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    blocks
}

/// Reports whether the block is a thought, readable or redacted.
pub(super) fn is_thought(block: &Value) -> bool {
    block["type"] == "thinking" || block["type"] == "redacted_thinking"
}

fn tool_use(id: &str, name: &str, input: &Map<String, Value>) -> Value {
    json!({"type": "tool_use", "id": wire_id(id), "name": tool_name(name), "input": input})
}

/// Returns a thought with its signature, or `None` without one: the API rejects unsigned thoughts.
fn thinking_block(thinking_block: &Value, signature: Option<&Value>) -> Option<Value> {
    let signature = signature?
        .as_str()
        .filter(|signature| !signature.is_empty())?;
    Some(json!({"type": "thinking", "thinking": thinking_block, SIGNATURE: signature}))
}

/// Converts a stored thought block to a block that may be sent again.
fn resendable_thought(block: &Value) -> Option<Value> {
    match block.get("type")?.as_str()? {
        "thinking" => thinking_block(block.get("thinking")?, block.get(SIGNATURE)),
        "redacted_thinking" => {
            Some(json!({"type": "redacted_thinking", "data": block.get("data")?}))
        }
        _ => None,
    }
}
