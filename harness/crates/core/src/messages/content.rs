//! Content of a message: plain text, or a list of blocks that are passed through unchanged.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Text or blocks. A block is a string or an object such as `{"type":"text","text":".."}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks of a provider or client, unchanged.
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
    /// Returns the [`text`](Self::text) of content given as JSON; empty for JSON that is not
    /// content.
    pub fn text_in(json: &Value) -> String {
        match json {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().filter_map(block_text).collect(),
            _ => String::new(),
        }
    }

    /// Returns all text of the content, blocks joined without a separator; other blocks are
    /// skipped.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().filter_map(block_text).collect(),
        }
    }

    /// Replaces all text: text blocks become one, at the position of the first of them or before
    /// all others.
    pub fn replace_text(&mut self, text: String) {
        match self {
            Self::Text(current) => *current = text,
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

    /// Reports whether there is neither text nor any block.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

/// Returns the text of one block, if it has any.
pub(super) fn block_text(block: &Value) -> Option<&str> {
    match block {
        Value::String(text) => Some(text),
        Value::Object(fields) if fields.get("type").is_none_or(|kind| kind == "text") => {
            fields.get("text").and_then(Value::as_str)
        }
        _ => None,
    }
}

/// Returns the JSON type of a value, for error texts.
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
