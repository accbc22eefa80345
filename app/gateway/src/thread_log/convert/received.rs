//! Messages and fragments as they are received in `messages` frames: a list of the message and its
//! metadata. Most frames are fragments of a few characters, so texts without escapes are borrowed
//! from the frame, and the metadata, which are longer, are read only for the first fragment.

use std::borrow::Cow;
use std::fmt;

use harness::runtime::stream_bridge::EventData;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Error, Map, Value};

use super::blocks::text_of;

/// A message or fragment, as far as it is read.
#[derive(Debug, Deserialize)]
pub(super) struct Received<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) content: Text<'a>,
    #[serde(default, borrow)]
    pub(super) additional_kwargs: Kwargs<'a>,
    #[serde(default)]
    pub(super) response_metadata: Map<String, Value>,
    #[serde(default)]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub(super) tool_call_chunks: Vec<CallFragment>,
    pub(super) usage_metadata: Option<Usage>,
    chunk_position: Option<IgnoredAny>,
    pub(super) tool_call_id: Option<String>,
}

impl<'a> Received<'a> {
    /// Reads the message at the start of a frame, whose end may be missing.
    pub(super) fn read(frame: &'a [u8]) -> Result<Self, Error> {
        let list = frame.strip_prefix(b"[").unwrap_or_default();
        let mut entries = serde_json::Deserializer::from_slice(list).into_iter();
        let missing =
            || serde::de::Error::custom("a list of a message and its metadata is missing");
        entries.next().unwrap_or_else(|| Err(missing()))
    }

    /// Reads the text at the start of a frame that ends with its text.
    pub(super) fn text(frame: &'a [u8]) -> Result<Text<'a>, Error> {
        let text = frame.strip_prefix(b"[{\"content\":").unwrap_or_default();
        serde_json::from_slice(text)
    }

    /// Reports whether a fragment has nothing but a text.
    pub(super) fn is_text_fragment(&self) -> bool {
        self.additional_kwargs.reasoning_content.0.is_empty()
            && self.response_metadata.is_empty()
            && self.tool_calls.is_empty()
            && self.tool_call_chunks.is_empty()
            && self.usage_metadata.is_none()
            && !self.is_last()
    }

    /// Reports whether this is the last fragment of its message.
    pub(super) fn is_last(&self) -> bool {
        self.chunk_position.is_some()
    }
}

/// Additional fields of a message, as far as they are read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Kwargs<'a> {
    #[serde(default, borrow)]
    pub(super) reasoning_content: Text<'a>,
}

/// Tool call of a whole message.
#[derive(Debug, Deserialize)]
pub(super) struct ToolCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) args: Value,
}

/// Fragment of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct CallFragment {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Option<String>,
    pub(super) index: Option<u64>,
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, Deserialize, Serialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub(super) input_tokens: u64,
    #[serde(default)]
    pub(super) output_tokens: u64,
    #[serde(default)]
    pub(super) total_tokens: u64,
}

/// Metadata of a frame, as far as it is read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Origin {
    #[serde(default)]
    pub(super) langgraph_node: String,
    pub(super) model_name: Option<String>,
    pub(super) ls_provider: Option<String>,
}

impl Origin {
    /// Reads the metadata of a frame.
    pub(super) fn read(frame: &EventData) -> Result<Self, Error> {
        let whole = frame.clone().into_bytes();
        let (_, origin): (IgnoredAny, Self) = serde_json::from_slice(&whole)?;
        Ok(origin)
    }
}

/// A text, or the texts of a list of parts; empty for anything else.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(deserializer.deserialize_any(TextVisitor)?))
    }
}

/// Reads a text from each form of content, without a copy if it has no escapes.
struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.to_owned().into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Self::Value, A::Error> {
        let parts = Value::deserialize(SeqAccessDeserializer::new(parts))?;
        Ok(text_of(&parts).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Cow::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_from_each_form_of_content() {
        for (json, expected) in [
            (r#""plain""#, "plain"),
            (r#""a\nb""#, "a\nb"),
            (
                r#"["a", {"type": "text", "text": "b"}, {"type": "image"}]"#,
                "ab",
            ),
            ("null", ""),
            ("7", ""),
            ("-7", ""),
            ("0.5", ""),
            ("true", ""),
            (r#"{"text": "no part"}"#, ""),
        ] {
            let text: Text<'_> = serde_json::from_str(json).expect("readable");
            assert_eq!(text.0, expected, "{json}");
        }
    }

    #[test]
    fn message_is_read_before_the_end_of_its_frame() {
        let received = Received::read(br#"[{"type":"ai","id":"m","content":"a"},{"lang"#);
        let received = received.expect("readable");
        assert_eq!((&*received.kind, &*received.content.0), ("ai", "a"));
        for broken in ["", "[", "{}", "[7", r#"[{"type":"ai""#] {
            assert!(Received::read(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let text: Text<'_> = serde_json::from_str(r#""plain""#).expect("readable");
        assert!(matches!(text.0, Cow::Borrowed("plain")));
    }
}
