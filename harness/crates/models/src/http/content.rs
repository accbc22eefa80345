//! Normalises the content of a conversation, which clients and providers write in different shapes.

use std::borrow::Cow;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ModelRequest;
use deerflow_core::messages::{Content, MessageKind};

/// Text of a first user message that replaces removed history.
const MISSING_BEGINNING: &str = "[The beginning of this conversation is not there any more.]";

/// Block of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block<'a> {
    /// Text. Never empty.
    Text(&'a str),
    Image(Image<'a>),
    /// A thought or call, which only models write. Valid only for its provider.
    Model(&'a Value),
    /// A block that only some providers know.
    Other(&'a Value),
}

/// Image by URL or content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Image<'a> {
    /// URL that the provider fetches itself.
    Address(&'a str),
    /// Content in base64.
    Bytes {
        /// MIME type, such as `image/png`.
        mime: &'a str,
        /// Base64 text.
        base64: &'a str,
    },
}

/// Returns the blocks of `content`. Omits empty texts, because strict providers reject them.
pub(crate) fn blocks(content: &Content) -> Vec<Block<'_>> {
    match content {
        Content::Text(text) => text_block(text).into_iter().collect(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::read).collect(),
    }
}

impl<'a> Block<'a> {
    /// Parses one block. Returns `None` if it is empty.
    pub(crate) fn read(value: &'a Value) -> Option<Self> {
        if let Value::String(text) = value {
            return text_block(text);
        }
        let fields = value.as_object()?;
        let field = |key: &str| fields.get(key).and_then(Value::as_str);
        match field("type") {
            Some("text") => text_block(field("text").unwrap_or_default()),
            Some("thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call") => {
                Some(Block::Model(value))
            }
            Some("image_url") => {
                let address = fields.get("image_url")?;
                Image::at(address.as_str().or_else(|| address.get("url")?.as_str())?)
                    .map(Block::Image)
            }
            Some("image") => image(value).map(Block::Image),
            _ => Some(Block::Other(value)),
        }
    }
}

fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.is_empty()).then_some(Block::Text(text))
}

fn image(block: &Value) -> Option<Image<'_>> {
    let source = block
        .get("source")
        .filter(|source| source.is_object())
        .unwrap_or(block);
    let field = |keys: &[&str]| keys.iter().find_map(|key| source.get(*key)?.as_str());
    if let Some(address) = field(&["url"]) {
        return Image::at(address);
    }
    let mime = field(&["mime_type", "media_type"]).unwrap_or("image/png");
    field(&["base64", "data"]).map(|base64| Image::Bytes { mime, base64 })
}

impl<'a> Image<'a> {
    /// Returns the image of a URL. A data URL contains the image itself.
    fn at(address: &'a str) -> Option<Self> {
        let Some(data) = address.strip_prefix("data:") else {
            return Some(Self::Address(address));
        };
        let (head, base64) = data.split_once(',')?;
        let mime = head
            .strip_suffix(";base64")?
            .split(';')
            .next()
            .filter(|mime| !mime.is_empty())
            .unwrap_or("image/png");
        Some(Self::Bytes { mime, base64 })
    }

    /// Returns the URL of the image: a data URL if its content is known.
    pub(crate) fn address(&self) -> Cow<'a, str> {
        match self {
            Self::Address(address) => Cow::Borrowed(address),
            Self::Bytes { mime, base64 } => Cow::Owned(format!("data:{mime};base64,{base64}")),
        }
    }
}

/// Returns all system texts joined.
pub(crate) fn system_text(request: &ModelRequest) -> Option<String> {
    let own = request.system.as_deref().map(str::to_owned);
    // The fields of other messages are not read: each is a cache miss, and some are large.
    let others = request.messages.iter().filter(|message| {
        let is_sent = message.is_human() || message.is_ai() || message.is_result();
        !is_sent && matches!(message.kind, MessageKind::System)
    });
    let texts: Vec<String> = own
        .into_iter()
        .chain(others.map(|message| message.content.text()))
        .filter(|text| !text.trim().is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Appends blocks of `role` under `key`. Merges them into the last turn if it has the same role,
/// because strict providers require alternating turns.
pub(crate) fn push_turn(turns: &mut Vec<Value>, role: &str, key: &str, mut blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    if let Some(last) = turns.last_mut().filter(|turn| turn["role"] == role)
        && let Some(content) = last.get_mut(key).and_then(Value::as_array_mut)
    {
        content.append(&mut blocks);
        return;
    }
    turns.push(json!({"role": role, key: blocks}));
}

/// Inserts a user turn if the first turn is not the user's, as strict providers require. This
/// happens if the history was truncated or rewritten. `block` creates the block of a text.
pub(crate) fn ensure_user_first(
    turns: &mut Vec<Value>,
    key: &str,
    block: impl FnOnce(&str) -> Value,
) {
    if turns.first().is_some_and(|turn| turn["role"] != "user") {
        turns.insert(0, json!({"role": "user", key: [block(MISSING_BEGINNING)]}));
    }
}

/// Returns a call's id with the characters that every provider accepts. Others are replaced by `_`.
pub(crate) fn wire_id(id: &str) -> String {
    id.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// Returns a call's id of at most `max_chars` characters. A longer id is replaced by a stable hash.
pub(crate) fn short_id(id: &str, max_chars: usize) -> Cow<'_, str> {
    if id.len() <= max_chars {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!(
        "call_{}",
        hex::encode(&Sha256::digest(id.as_bytes())[..16])
    ))
}

/// Returns a name with the characters that providers accept, or `None` if none of its characters is
/// accepted.
pub(crate) fn wire_name(name: &str) -> Option<String> {
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "_-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(64)
        .collect();
    name.contains(|c: char| c != '_').then_some(name)
}

/// Returns the name of a called tool. Models invent names that providers, even their own, reject in
/// later requests.
pub(crate) fn tool_name(name: &str) -> String {
    wire_name(name).unwrap_or_else(|| "unknown_tool".to_owned())
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
