//! A conversation as Anthropic has it: turns of blocks, tool results among the user's.

use serde_json::{Map, Value, json};

use super::SIGNATURE;
use crate::messages::{Content, Message, MessageKind, ToolStatus};
use crate::models::ModelRequest;
use crate::models::http::{
    Block, Image, Maker, Said, blocks, push_turn, said, tool_name, user_first, wire_id,
};

/// The turns of `request` to `maker`, without what the system says.
pub(super) fn turns(request: &ModelRequest, maker: &Maker) -> Vec<Value> {
    let mut turns = Vec::with_capacity(request.messages.len());
    for message in &request.messages {
        match &message.kind {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => {
                push_turn(&mut turns, "user", "content", content(&message.content))
            }
            MessageKind::Ai { .. } => {
                push_turn(&mut turns, "assistant", "content", answer(message, maker))
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
    user_first(
        &mut turns,
        "content",
        |text| json!({"type": "text", "text": text}),
    );
    turns
}

/// A text, unless it is blank: such blocks are refused.
fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
}

fn content(content: &Content) -> Vec<Value> {
    let as_block = |block| match block {
        Block::Text(said) => text(said),
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

fn result(call: &str, said: &Content, status: ToolStatus) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": wire_id(call)});
    let mut content = content(said);
    if status == ToolStatus::Error {
        // Only a result of text may be marked as an error.
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

fn answer(message: &Message, maker: &Maker) -> Vec<Value> {
    let whole = message.content.text();
    // Answers that other software streamed keep their thoughts among their blocks. Their full name may have a date behind it.
    let named = message
        .response_metadata
        .get("model_name")
        .and_then(Value::as_str);
    let mine = named.is_some_and(|name| name.starts_with(maker.model()));
    let thoughts = blocks(&message.content)
        .into_iter()
        .filter_map(|block| match block {
            Block::Model(block) if mine => sent_thought(block),
            _ => None,
        });
    let own = said(message, &whole, Some(maker))
        .into_iter()
        .filter_map(|part| match part {
            Said::Text(said, _) => text(said),
            Said::Thought(thought, signed) => self::thought(&json!(thought), signed.get(SIGNATURE)),
            Said::Own(block) => Some(block),
            Said::Call(call, _) => Some(tool_use(&call.id, &call.name, &call.args)),
            Said::Invalid(call) => {
                let args = Map::from_iter([("unreadable_arguments".to_owned(), json!(call.args))]);
                Some(tool_use(
                    call.id.as_deref().unwrap_or_default(),
                    call.name.as_deref().unwrap_or_default(),
                    &args,
                ))
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
    json!({"type": "tool_use", "id": wire_id(id), "name": tool_name(name), "input": input})
}

/// A thought, if it is signed: others are refused.
fn thought(thought: &Value, signature: Option<&Value>) -> Option<Value> {
    let signature = signature?
        .as_str()
        .filter(|signature| !signature.is_empty())?;
    Some(json!({"type": "thinking", "thinking": thought, SIGNATURE: signature}))
}

/// A thought among the blocks of an answer, as it may be sent again.
fn sent_thought(block: &Value) -> Option<Value> {
    match block.get("type")?.as_str()? {
        "thinking" => thought(block.get("thinking")?, block.get(SIGNATURE)),
        "redacted_thinking" => {
            Some(json!({"type": "redacted_thinking", "data": block.get("data")?}))
        }
        _ => None,
    }
}
