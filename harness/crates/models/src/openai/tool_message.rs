//! Results of tools in chat completions. On this wire a result is text.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::calls::MAX_ID_CHARS;
use super::dialect::Dialect;
use super::user_message::image_url;
use crate::http::{Block, blocks, short_id};
use deerflow_core::messages::Content;

/// Result as the API reads it.
#[derive(Debug, Serialize)]
pub(super) struct ToolMessage<'a> {
    role: &'static str,
    tool_call_id: Cow<'a, str>,
    content: Cow<'a, str>,
}

impl<'a> ToolMessage<'a> {
    /// Returns the result `content` of the call `tool_call_id`.
    pub(super) fn new(content: &'a Content, tool_call_id: &'a str, dialect: Dialect) -> Self {
        Self {
            role: "tool",
            tool_call_id: short_id(tool_call_id, MAX_ID_CHARS),
            content: text(content, dialect),
        }
    }
}

/// Returns the text of a result, with a note about its images.
fn text(content: &Content, dialect: Dialect) -> Cow<'_, str> {
    let text = content.text_cow();
    let is_image = |block: &Block<'_>| matches!(block, Block::Image(_));
    let images = match blocks(content).into_iter().filter(is_image).count() {
        0 if text.is_empty() && !content.is_empty() => "(the result holds no text)".to_owned(),
        0 => return text,
        _ if dialect.accepts_images => "(images follow)".to_owned(),
        count => format!("({count} images, which you cannot see)"),
    };
    if text.is_empty() {
        images.into()
    } else {
        format!("{text}\n{images}").into()
    }
}

/// Returns the images of a result as the API reads them.
pub(super) fn images_of(content: &Content) -> impl Iterator<Item = Value> {
    blocks(content).into_iter().filter_map(|block| match block {
        Block::Image(image) => Some(image_url(&image)),
        _ => None,
    })
}
