//! Content and author of user messages in chat completions.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::dialect::Dialect;
use crate::http::{Block, Image, wire_name};
use deerflow_core::messages::{Content, Message};

/// Returns the name of the author of a message as the API accepts it.
pub(super) fn sent_name(message: &Message, dialect: Dialect) -> Option<String> {
    let name = message.name.as_deref().filter(|_| !dialect.drops_names);
    name.and_then(wire_name)
}

/// Converts an image.
pub(super) fn image_url(image: &Image<'_>) -> Value {
    json!({"type": "image_url", "image_url": {"url": image.address()}})
}

/// Converts the content of a user message.
pub(super) fn user_content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!(text),
        Content::Blocks(blocks) => {
            let sent = blocks.iter().filter_map(block);
            sent.map(Cow::into_owned).collect()
        }
    }
}

/// Converts a content block. Images in other providers' formats become data URLs. Blocks that only
/// models write are omitted. Unknown blocks are passed through.
pub(super) fn block(block: &Value) -> Option<Cow<'_, Value>> {
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
