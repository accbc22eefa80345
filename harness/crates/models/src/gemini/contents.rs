//! Converts a conversation to Gemini's format: contents of parts, with function results in user
//! contents.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::SIGNATURE;
use super::generation::is_third_generation;
use crate::ModelRequest;
use crate::http::{
    Block, Image, ModelOrigin, ReplayPart, blocks, ensure_user_first, push_turn, replay_parts,
    tool_name,
};
use deerflow_core::messages::{Content, Message, MessageKind, ToolStatus};

/// Signature of a call that the model did not make.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the contents of `request` to `origin`, without system texts.
pub(super) fn contents(request: &ModelRequest, origin: &ModelOrigin) -> Vec<Value> {
    let mut contents = Vec::with_capacity(request.messages.len());
    // Results must contain the function name, which not every tool message has.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in &request.messages {
        match message.kind() {
            MessageKind::System | MessageKind::Remove => {}
            MessageKind::Human => push_turn(
                &mut contents,
                "user",
                "parts",
                parts(&message.sent_content()),
            ),
            MessageKind::Ai { tool_calls, .. } => {
                names.extend(
                    tool_calls
                        .iter()
                        .map(|call| (call.id.as_str(), call.name.as_str())),
                );
                push_turn(&mut contents, "model", "parts", answer(message, origin));
            }
            MessageKind::Tool {
                tool_call_id,
                status,
                ..
            } => {
                let name = names
                    .get(tool_call_id.as_str())
                    .copied()
                    .or(message.name.as_deref())
                    .unwrap_or("unknown");
                push_turn(
                    &mut contents,
                    "user",
                    "parts",
                    result(name, tool_call_id, &message.content, *status),
                );
            }
        }
    }
    ensure_user_first(&mut contents, "parts", |text| json!({"text": text}));
    if is_third_generation(origin.model()) {
        contents.iter_mut().for_each(sign_first_call);
    }
    contents
}

/// Signs the first call of a content. Gemini 3 and later reject calls of other models, which have
/// no signature.
fn sign_first_call(content: &mut Value) {
    let parts = content
        .get_mut("parts")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten();
    let first = parts
        .filter_map(Value::as_object_mut)
        .find(|part| part.contains_key("functionCall"));
    if let Some(part) = first {
        part.entry(SIGNATURE).or_insert_with(|| json!(NO_SIGNATURE));
    }
}

fn parts(content: &Content) -> Vec<Value> {
    let as_part = |block| match block {
        Block::Text(text) => Some(json!({"text": text})),
        Block::Image(image) => Some(self::image(&image)),
        Block::Model(_) => None,
        // A part in Gemini's own format, such as a file.
        Block::Other(other) => {
            (other.is_object() && other.get("type").is_none()).then(|| other.clone())
        }
    };
    blocks(content).into_iter().filter_map(as_part).collect()
}

fn image(image: &Image<'_>) -> Value {
    match image {
        Image::Address(uri) => json!({"fileData": {"fileUri": uri}}),
        Image::Bytes { mime, base64 } => json!({"inlineData": {"mimeType": mime, "data": base64}}),
    }
}

/// Returns a result followed by its images, because Gemini does not support images inside results.
fn result(name: &str, id: &str, content: &Content, status: ToolStatus) -> Vec<Value> {
    let key = if status == ToolStatus::Error {
        "error"
    } else {
        "result"
    };
    let images = blocks(content).into_iter().filter_map(|block| {
        if let Block::Image(image) = block {
            Some(image)
        } else {
            None
        }
    });
    let response = json!({"functionResponse": {"name": tool_name(name), "id": id, "response": {key: content.text()}}});
    std::iter::once(response)
        .chain(images.map(|source| image(&source)))
        .collect()
}

fn answer(message: &Message, origin: &ModelOrigin) -> Vec<Value> {
    let text = message.content.text();
    let as_part = |part| match part {
        ReplayPart::Text(text, extras) => {
            (!text.is_empty() || !extras.is_empty()).then(|| signed(json!({"text": text}), extras))
        }
        ReplayPart::Call(call, extras) => Some(signed(
            json!({"functionCall": {"name": tool_name(&call.name), "id": call.id, "args": call.args}}),
            extras,
        )),
        ReplayPart::Invalid(call) => {
            let args = json!({"unreadable_arguments": call.args});
            let name = tool_name(call.name.as_deref().unwrap_or_default());
            Some(json!({"functionCall": {"name": name, "id": call.id, "args": args}}))
        }
        ReplayPart::ProviderSpecific(part) => Some(part),
        ReplayPart::Thought(..) => None,
    };
    replay_parts(message, &text, Some(origin))
        .into_iter()
        .filter_map(as_part)
        .collect()
}

fn signed(mut part: Value, extras: Map<String, Value>) -> Value {
    if let Some(signature) = extras.get(SIGNATURE) {
        part[SIGNATURE] = signature.clone();
    }
    part
}
