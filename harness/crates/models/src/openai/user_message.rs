//! User messages in chat completions, serialized without copies of their texts and images.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::http::{Block, Image, wire_name};
use deerflow_core::messages::{Content, MessageBody, TextPieces, block_text};

/// User message as the API reads it.
#[derive(Debug, Serialize)]
pub(super) struct UserMessage<'a> {
    role: &'static str,
    content: UserContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(TextPieces<'a>),
    Blocks(Vec<UserBlock<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum UserBlock<'a> {
    Framed {
        #[serde(rename = "type")]
        kind: &'static str,
        text: TextPieces<'a>,
    },
    Other(Cow<'a, Value>),
}

impl<'a> UserMessage<'a> {
    /// Returns a human message with the text `framed`, or with its own if that is `None`.
    pub(super) fn new(
        message: &'a MessageBody,
        framed: Option<TextPieces<'a>>,
        dialect: Dialect,
    ) -> Self {
        Self {
            role: "user",
            content: UserContent::new(&message.content, framed, dialect),
            name: sent_name(message, dialect),
        }
    }
}

impl<'a> UserContent<'a> {
    fn new(content: &'a Content, framed: Option<TextPieces<'a>>, dialect: Dialect) -> Self {
        let blocks = match content {
            Content::Blocks(blocks) if !dialect.flattens_content => blocks,
            _ => {
                return Self::Text(framed.unwrap_or_else(|| TextPieces::new([content.text_cow()])));
            }
        };
        let Some(text) = framed else {
            return Self::Blocks(others(blocks).collect());
        };
        // The text is where `Content::with_text` places it.
        let is_text = |block: &Value| block_text(block).is_some();
        let (before, after) = blocks.split_at(blocks.iter().position(is_text).unwrap_or(0));
        let after = after.iter().filter(|block| !is_text(block));
        let kind = "text";
        let text = UserBlock::Framed { kind, text };
        Self::Blocks(others(before).chain([text]).chain(others(after)).collect())
    }
}

fn others<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> impl Iterator<Item = UserBlock<'a>> {
    blocks.into_iter().filter_map(block).map(UserBlock::Other)
}

/// Converts a content block. Images in other providers' formats become data URLs. Blocks that only
/// models write are omitted. Unknown blocks are passed through.
fn block(block: &Value) -> Option<Cow<'_, Value>> {
    // Unchanged, because it may contain the detail level of the image.
    if block.get("image_url").is_some_and(Value::is_object) {
        return Some(Cow::Borrowed(block));
    }
    match Block::read(block)? {
        Block::Text(text) => Some(Cow::Owned(json!({"type": "text", "text": text}))),
        Block::Image(image) => Some(Cow::Owned(image_url(&image))),
        Block::Model(_) => None,
        Block::Other(other) => other.is_object().then_some(Cow::Borrowed(other)),
    }
}

/// Converts an image.
pub(super) fn image_url(image: &Image<'_>) -> Value {
    json!({"type": "image_url", "image_url": {"url": image.address()}})
}

/// Returns the name of the author of a message as the API accepts it.
pub(super) fn sent_name(message: &MessageBody, dialect: Dialect) -> Option<String> {
    let name = message.name.as_deref().filter(|_| !dialect.drops_names);
    name.and_then(wire_name)
}

#[cfg(test)]
#[path = "user_message_tests.rs"]
mod tests;
