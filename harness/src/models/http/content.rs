//! What is in a conversation, freed from the shapes that clients and providers wrote it in.

use std::borrow::Cow;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::messages::{Content, MessageKind};
use crate::models::ModelRequest;

/// What stands for what was said first, when that is gone.
const BEGINNING: &str = "[The beginning of this conversation is not there any more.]";

/// One block of a message.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) enum Block<'a> {
    /// Text, never empty.
    Text(&'a str),
    /// An image.
    Image(Image<'a>),
    /// What only models write: their thoughts and calls. It belongs to the provider that it came from.
    Model(&'a Value),
    /// What only some provider knows.
    Other(&'a Value),
}

/// An image by its address or its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::models) enum Image<'a> {
    /// At an address that the provider opens itself.
    Address(&'a str),
    /// In base64.
    Bytes {
        /// Such as `image/png`.
        mime: &'a str,
        /// The base64 text.
        base64: &'a str,
    },
}

/// The blocks of `content`; empty texts are left out, since strict providers refuse them.
pub(in crate::models) fn blocks(content: &Content) -> Vec<Block<'_>> {
    match content {
        Content::Text(text) => text_block(text).into_iter().collect(),
        Content::Blocks(blocks) => blocks.iter().filter_map(Block::read).collect(),
    }
}

impl<'a> Block<'a> {
    /// Reads one block; nothing where it holds nothing.
    pub(in crate::models) fn read(value: &'a Value) -> Option<Self> {
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
    let place = block
        .get("source")
        .filter(|source| source.is_object())
        .unwrap_or(block);
    let field = |keys: &[&str]| keys.iter().find_map(|key| place.get(*key)?.as_str());
    if let Some(address) = field(&["url"]) {
        return Image::at(address);
    }
    let mime = field(&["mime_type", "media_type"]).unwrap_or("image/png");
    field(&["base64", "data"]).map(|base64| Image::Bytes { mime, base64 })
}

impl<'a> Image<'a> {
    /// The image at `address`, whose bytes a data URL holds itself.
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

    /// As an address, bytes as a data URL.
    pub(in crate::models) fn address(&self) -> Cow<'a, str> {
        match self {
            Self::Address(address) => Cow::Borrowed(address),
            Self::Bytes { mime, base64 } => Cow::Owned(format!("data:{mime};base64,{base64}")),
        }
    }
}

/// All that speaks with the system's authority, in one text.
pub(in crate::models) fn system_text(request: &ModelRequest) -> Option<String> {
    let own = request.system.as_deref().map(str::to_owned);
    let others = request
        .messages
        .iter()
        .filter(|message| matches!(message.kind, MessageKind::System));
    let texts: Vec<String> = own
        .into_iter()
        .chain(others.map(|message| message.content.text()))
        .filter(|text| !text.trim().is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Adds what `role` says under `key`; to the turn before, if that is the same speaker's: strict providers want them in turns.
pub(in crate::models) fn push_turn(
    turns: &mut Vec<Value>,
    role: &str,
    key: &str,
    mut blocks: Vec<Value>,
) {
    if blocks.is_empty() {
        return;
    }
    if let Some(last) = turns.last_mut().filter(|turn| turn["role"] == role)
        && let Some(said) = last.get_mut(key).and_then(Value::as_array_mut)
    {
        said.append(&mut blocks);
        return;
    }
    turns.push(json!({"role": role, key: blocks}));
}

/// Has the user speak first, as strict providers demand, also where the history was cut or rewritten: `block` makes the text of it.
pub(in crate::models) fn user_first(
    turns: &mut Vec<Value>,
    key: &str,
    block: impl FnOnce(&str) -> Value,
) {
    if turns.first().is_some_and(|turn| turn["role"] != "user") {
        turns.insert(0, json!({"role": "user", key: [block(BEGINNING)]}));
    }
}

/// A call's id in the alphabet that every provider accepts; ids of other providers may have more letters.
pub(in crate::models) fn wire_id(id: &str) -> String {
    id.chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || "_-".contains(letter) {
                letter
            } else {
                '_'
            }
        })
        .collect()
}

/// A call's id in at most `longest` letters; a longer one becomes a shorter that is the same whenever it is asked for.
pub(in crate::models) fn short_id(id: &str, longest: usize) -> Cow<'_, str> {
    if id.len() <= longest {
        return Cow::Borrowed(id);
    }
    Cow::Owned(format!(
        "call_{}",
        hex::encode(&Sha256::digest(id.as_bytes())[..16])
    ))
}

/// A name in the alphabet that providers accept; nothing where no letter of it is in there.
pub(in crate::models) fn wire_name(name: &str) -> Option<String> {
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

/// The name of a tool that was called. Models invent names that providers, also their own, do not take back.
pub(in crate::models) fn tool_name(name: &str) -> String {
    wire_name(name).unwrap_or_else(|| "unknown_tool".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_of_every_shape_are_one() {
        let content = Content::Blocks(
            json!([
                "plain", "", {"type": "text", "text": ""}, 7,
                {"type": "image_url", "image_url": {"url": "data:image/gif;charset=x;base64,AA", "detail": "low"}},
                {"type": "image_url", "image_url": "http://x/y.png"},
                {"type": "image", "base64": "BB", "mime_type": "image/webp"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "CC"}},
                {"type": "image", "source": {"type": "url", "url": "data:broken"}},
                {"type": "thinking", "thinking": "t"},
                {"type": "input_audio"},
            ])
            .as_array()
            .unwrap()
            .clone(),
        );
        assert_eq!(
            blocks(&content),
            [
                Block::Text("plain"),
                Block::Image(Image::Bytes {
                    mime: "image/gif",
                    base64: "AA"
                }),
                Block::Image(Image::Address("http://x/y.png")),
                Block::Image(Image::Bytes {
                    mime: "image/webp",
                    base64: "BB"
                }),
                Block::Image(Image::Bytes {
                    mime: "image/png",
                    base64: "CC"
                }),
                Block::Model(&json!({"type": "thinking", "thinking": "t"})),
                Block::Other(&json!({"type": "input_audio"})),
            ]
        );
        assert_eq!(
            Image::Bytes {
                mime: "a/b",
                base64: "Q"
            }
            .address(),
            "data:a/b;base64,Q"
        );
    }

    #[test]
    fn long_ids_become_short_ones_that_stay_the_same() {
        let long = format!("call_{}_0", "x".repeat(40));
        assert_eq!(
            (short_id("call_1", 40), short_id(&long, 64)),
            ("call_1".into(), long.as_str().into())
        );
        assert_eq!(
            (short_id(&long, 40).len(), short_id(&long, 40)),
            (37, short_id(&long, 40))
        );
        assert_ne!(short_id(&long, 40), short_id(&long.replace("_0", "_1"), 40));
    }

    #[test]
    fn invented_names_of_tools_are_told_in_the_alphabet_of_providers() {
        for (name, told) in [
            ("read-file_2", "read-file_2"),
            ("fs.read file", "fs_read_file"),
            ("", "unknown_tool"),
            ("工具", "unknown_tool"),
        ] {
            assert_eq!(tool_name(name), told);
        }
        assert_eq!(tool_name(&"n".repeat(90)).len(), 64);
    }

    #[test]
    fn one_speaker_has_one_turn() {
        let mut turns = vec![];
        push_turn(&mut turns, "user", "parts", vec![json!(1)]);
        push_turn(&mut turns, "user", "parts", vec![json!(2)]);
        push_turn(&mut turns, "model", "parts", vec![]);
        push_turn(&mut turns, "model", "parts", vec![json!(3)]);
        assert_eq!(
            json!(turns),
            json!([{"role": "user", "parts": [1, 2]}, {"role": "model", "parts": [3]}])
        );
    }
}
