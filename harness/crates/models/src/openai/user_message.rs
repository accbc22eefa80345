//! JSON of a user message with a large content, serialized without copies of its texts and images.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::dialect::Dialect;
use super::user_content::{block, sent_name};
use deerflow_core::messages::{Content, Message, TextPieces, block_text};

/// User message as the API reads it.
#[derive(Debug, Serialize)]
pub(super) struct LargeUserMessage<'a> {
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

impl<'a> LargeUserMessage<'a> {
    /// Returns a user message in the form that models receive; `None` for messages of other roles.
    pub(super) fn of(message: &'a Message, dialect: Dialect) -> Option<Self> {
        let framed = message.framed_text();
        let message = message.without_frame();
        message.is_human().then(|| Self {
            role: "user",
            content: UserContent::of(&message.content, framed, dialect),
            name: sent_name(message, dialect),
        })
    }
}

impl<'a> UserContent<'a> {
    /// Returns a content with the text `framed`, if there is one, at the place of its own.
    fn of(content: &'a Content, framed: Option<TextPieces<'a>>, dialect: Dialect) -> Self {
        let blocks = match content {
            Content::Blocks(blocks) if !dialect.flattens_content => blocks,
            _ => {
                return Self::Text(framed.unwrap_or_else(|| TextPieces::new([content.text_cow()])));
            }
        };
        let Some(text) = framed else {
            return Self::Blocks(others(blocks).collect());
        };
        let before = blocks
            .iter()
            .take_while(|block| block_text(block).is_none());
        let (before, after) = blocks.split_at(before.count());
        let after = after.iter().filter(|block| block_text(block).is_none());
        let kind = "text";
        let text = UserBlock::Framed { kind, text };
        Self::Blocks(others(before).chain([text]).chain(others(after)).collect())
    }
}

fn others<'a>(blocks: impl IntoIterator<Item = &'a Value>) -> impl Iterator<Item = UserBlock<'a>> {
    blocks.into_iter().filter_map(block).map(UserBlock::Other)
}

#[cfg(test)]
#[path = "large_user_message_tests.rs"]
mod tests;
