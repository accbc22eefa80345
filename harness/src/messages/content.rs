//! The content of a message: plain text, or a list of blocks that are passed through as they came.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Text or blocks. A block is a string or an object such as `{"type":"text","text":".."}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Provider or client blocks, kept untouched.
    Blocks(Vec<Value>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Content {
    /// The [`text`](Self::text) of a content as JSON; none of what is no content.
    pub fn text_in(json: &Value) -> String {
        match json {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().filter_map(block_text).collect(),
            _ => String::new(),
        }
    }

    /// All text of the content, blocks joined without a separator; other blocks are left out.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(block_text).collect(),
        }
    }

    /// Puts another text in place of all text: blocks of text become one, where the first of them stood or before all others.
    pub fn replace_text(&mut self, text: String) {
        match self {
            Self::Text(held) => *held = text,
            Self::Blocks(blocks) => {
                let at = blocks
                    .iter()
                    .position(|block| block_text(block).is_some())
                    .unwrap_or(0);
                blocks.retain(|block| block_text(block).is_none());
                blocks.insert(at, serde_json::json!({ "type": "text", "text": text }));
            }
        }
    }

    /// Whether there is neither text nor any block.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// The text of one block, if it carries any.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(fields) if fields.get("type").is_none_or(|kind| kind == "text") => {
            fields.get("text").and_then(Value::as_str)
        }
        _ => None,
    }
}

/// What a value is, for people.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
