//! Content of a message: plain text, or a list of blocks that are passed through unchanged.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Text or blocks. A block is a string or an object such as `{"type":"text","text":".."}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Blocks of a provider or client, unchanged.
    Blocks(Vec<Value>),
}

/// Reads content without the buffer that a derived implementation would copy texts and blocks from.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Content, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(Content::Blocks)
    }
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
        self.text_cow().into_owned()
    }

    /// Returns all text of the content like [`text`](Self::text), without a copy of plain text.
    pub fn text_cow(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => blocks.iter().filter_map(block_text).collect(),
        }
    }

    /// Reports whether the [`text`](Self::text) has only whitespace or is empty.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => blocks
                .iter()
                .filter_map(block_text)
                .all(|text| text.trim().is_empty()),
        }
    }

    /// Returns the number of bytes of all strings in the content, such as images in blocks.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Blocks(blocks) => blocks.iter().map(string_bytes).sum(),
        }
    }

    /// Returns the first `max_chars` characters of the [`text`](Self::text), without a copy of the
    /// rest.
    pub fn text_start(&self, max_chars: usize) -> String {
        match self {
            Self::Text(text) => text.chars().take(max_chars).collect(),
            Self::Blocks(blocks) => {
                let texts = blocks.iter().filter_map(block_text);
                texts.flat_map(str::chars).take(max_chars).collect()
            }
        }
    }

    /// Returns a copy with another text: text blocks become one, at the position of the first of them
    /// or before all others. Does not copy the present text.
    #[must_use]
    pub fn with_text(&self, text: String) -> Self {
        let Self::Blocks(blocks) = self else {
            return Self::Text(text);
        };
        let is_text = |block: &Value| block_text(block).is_some();
        let at = blocks.iter().position(is_text).unwrap_or(0);
        let others = blocks.iter().filter(|block| !is_text(block));
        let mut changed: Vec<Value> = others.cloned().collect();
        changed.insert(at, serde_json::json!({ "type": "text", "text": text }));
        Self::Blocks(changed)
    }

    /// Reports whether there is neither text nor any block.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

fn string_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(string_bytes).sum(),
        Value::Object(fields) => fields.values().map(string_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns the text of one block of a content, if it has any.
pub fn block_text(block: &Value) -> Option<&str> {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn start_of_a_text_is_counted_in_characters() {
        let block = |text: &str| json!({ "type": "text", "text": text });
        let blocks = Content::Blocks(vec![block("zażó"), json!({ "type": "image" }), block("łć")]);
        for content in [Content::from("zażółć"), blocks] {
            assert_eq!(content.text_start(0), "");
            assert_eq!(content.text_start(5), "zażół");
            assert_eq!(content.text_start(9), content.text());
        }
    }

    #[test]
    fn content_is_a_text_or_a_list() {
        let blocks = json!(["a", { "type": "text", "text": "b" }]);
        let read = |json: &Value| serde_json::from_str::<Content>(&json.to_string());
        let valid = [json!(""), json!("a\"\u{0}é"), json!([]), blocks];
        for json in valid {
            let content = read(&json).expect("content");
            assert_eq!(serde_json::to_value(&content).expect("JSON"), json);
            let moved: Content = serde_json::from_value(json).expect("content");
            assert_eq!(moved, content);
        }
        for json in [json!(1), json!(null), json!({ "text": "a" }), json!(true)] {
            let error = read(&json).expect_err("no content").to_string();
            assert!(error.contains("a text or a list of blocks"), "{error}");
        }
    }
}
