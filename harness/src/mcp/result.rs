//! Converts the result of a tool call to message content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

use super::decoding::UNKNOWN_PART;
use crate::messages::Content;
use crate::tools::builtins::type_of_content;
use crate::tools::{ToolError, ToolOutput};

/// Maximum length of the text of a result, in characters. Shorter texts that are too long for the
/// conversation are moved to a file of the thread by the tool output middleware.
const MAX_TEXT_CHARS: usize = 1_000_000;
/// Maximum size of an image for the model, in bytes of base64.
const MAX_IMAGE_BASE64_BYTES: usize = 7 * 1024 * 1024;
/// Maximum number of blocks of one result.
const MAX_BLOCKS: usize = 200;
/// Maximum number of images of one result.
const MAX_IMAGES: usize = 20;
/// Maximum size of the structured content that is stored, in bytes.
const MAX_STRUCTURED_BYTES: usize = 1_000_000;

/// Converts a result to tool output. `mask` removes host paths from texts.
pub(super) fn output(
    result: CallToolResult,
    mask: impl Fn(&str) -> String,
) -> Result<ToolOutput, ToolError> {
    let omitted = result.content.len().saturating_sub(MAX_BLOCKS);
    let mut blocks: Vec<Value> = result
        .content
        .into_iter()
        .take(MAX_BLOCKS)
        .map(|block| content_block(block, &mask))
        .collect();
    let structured = result
        .structured_content
        .map(|structured| masked(structured, &mask));
    if blocks.is_empty()
        && let Some(structured) = &structured
    {
        blocks.push(text(&structured.to_string()));
    }
    limit_text(&mut blocks);
    limit_images(&mut blocks);
    if omitted > 0 {
        blocks.push(text(&format!("[{omitted} more parts are left out]")));
    }
    let content = match joined(&blocks) {
        Some(text) => Content::Text(text),
        None => Content::Blocks(blocks),
    };
    if result.is_error == Some(true) {
        let text_content = content.text();
        let text_content = if text_content.trim().is_empty() {
            "the tool failed and did not say why"
        } else {
            text_content.trim()
        };
        return Err(ToolError::for_model(format!("Error: {text_content}")));
    }
    let retained =
        structured.filter(|structured| structured.to_string().len() <= MAX_STRUCTURED_BYTES);
    let artifact = retained.map_or(
        Value::Null,
        |structured| json!({ "structured_content": structured }),
    );
    Ok(ToolOutput {
        artifact,
        ..ToolOutput::text(content)
    })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn content_block(block: ContentBlock, mask: &impl Fn(&str) -> String) -> Value {
    match block {
        ContentBlock::Text(block) => text(&mask(&block.text)),
        ContentBlock::Image(image) => bytes(&image.data, &image.mime_type),
        ContentBlock::Audio(audio) => bytes(&audio.data, &audio.mime_type),
        // A link never becomes an image block: the provider would fetch an address that the server
        // chose.
        ContentBlock::ResourceLink(link) => text(&mask(&format!("[{}: {}]", link.name, link.uri))),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents {
                text: text_content, ..
            } => text(&mask(&text_content)),
            ResourceContents::BlobResourceContents {
                blob, mime_type, ..
            } => bytes(&blob, &mime_type.unwrap_or_default()),
            _ => text(UNKNOWN_PART),
        },
        _ => text(UNKNOWN_PART),
    }
}

/// Converts base64 data to an image block, or to a text that states what is omitted. A provider
/// rejects every further request of a conversation that contains an invalid image, so the kind is
/// detected from the bytes and not taken from the declared media type.
fn bytes(base64: &str, kind: &str) -> Value {
    let plain_kind: String = kind.chars().take(100).collect();
    let size = base64.len() / 4 * 3;
    if base64.len() > MAX_IMAGE_BASE64_BYTES {
        return text(&format!(
            "[{size} bytes of type {plain_kind:?}, which are too many to be shown]"
        ));
    }
    let base64: String = base64.split_ascii_whitespace().collect();
    let decoded = STANDARD.decode(&base64).unwrap_or_default();
    match type_of_content(&decoded) {
        Some(found) => json!({ "type": "image", "base64": base64, "mime_type": found }),
        None => text(&format!(
            "[{size} bytes of type {plain_kind:?}, which cannot be shown]"
        )),
    }
}

/// Drops images beyond the limit.
fn limit_images(blocks: &mut Vec<Value>) {
    let (mut images, before) = (0, blocks.len());
    blocks.retain(|block| {
        images += usize::from(block["type"] == "image");
        block["type"] != "image" || images <= MAX_IMAGES
    });
    if blocks.len() < before {
        blocks.push(text(&format!(
            "[{} more images are left out]",
            before - blocks.len()
        )));
    }
}

/// Masks all strings in a JSON value, keys included.
fn masked(value: Value, mask: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => mask(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| masked(item, mask)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (mask(&name), masked(value, mask)))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

/// Truncates the texts to a total of [`MAX_TEXT_CHARS`].
fn limit_text(blocks: &mut Vec<Value>) {
    let (mut remaining, mut dropped) = (MAX_TEXT_CHARS, 0);
    blocks.retain_mut(|block| {
        let Some(Value::String(text)) = block.get_mut("text") else {
            return true;
        };
        let length = text.chars().count();
        if let Some((at, _)) = text.char_indices().nth(remaining) {
            text.truncate(at);
            dropped += length - remaining;
        }
        remaining = remaining.saturating_sub(length);
        !text.is_empty()
    });
    if dropped > 0 {
        blocks.push(text(&format!("[{dropped} more characters are left out]")));
    }
}

/// Joins blocks that are all text; `None` if one is not.
fn joined(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|block| block.get("text")?.as_str())
        .collect();
    Some(texts?.join("\n"))
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
