//! Event of a chat-completions stream as JSON. Parsed leniently, because compatible servers differ
//! in the fields that they leave out, send as null, or wrap.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::http::{count, count_of, lenient, text};
use deerflow_core::messages::UsageMetadata;

/// Event of a stream, or a whole answer that is not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct ChatCompletionsEvent<'a> {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<ChatCompletionsUsage>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    /// `error` in the flat error form of some servers.
    #[serde(borrow, default, deserialize_with = "text")]
    object: Option<Cow<'a, str>>,
}

impl ChatCompletionsEvent<'_> {
    /// Reports whether the event should also be parsed as an error.
    pub(super) fn may_be_error(&self) -> bool {
        self.error.is_some() || self.object.as_deref() == Some("error")
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    /// Set in answers that are not streamed.
    #[serde(default)]
    pub(super) message: Option<Delta>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    content: Option<Text>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    reasoning_details: Option<Value>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallDelta>>,
}

/// Text, or parts that contain text.
#[derive(Debug)]
enum Text {
    Plain(String),
    Parts(Vec<Part>),
}

// Derived code would copy the text once more: each token has one.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::Plain(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Text, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(parts)).map(Text::Parts)
    }
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionDelta>,
    #[serde(default)]
    extra_content: Option<Value>,
    #[serde(default)]
    thought_signature: Option<Value>,
    #[serde(default, rename = "thoughtSignature")]
    thought_signature_in_camel_case: Option<Value>,
}

impl CallDelta {
    /// Creates a call that arrived in one piece, without an id.
    pub(super) fn whole(name: String, args: Map<String, Value>) -> Self {
        let function = FunctionDelta {
            name: Some(name),
            arguments: Some(Value::Object(args)),
        };
        Self {
            index: None,
            id: None,
            function: Some(function),
            extra_content: None,
            thought_signature: None,
            thought_signature_in_camel_case: None,
        }
    }

    /// Removes and returns the fields that the provider requires back with the call, with their
    /// original keys. Usually there are none.
    pub(super) fn take_extras(&mut self) -> Map<String, Value> {
        let spelled = [
            ("extra_content", self.extra_content.take()),
            ("thought_signature", self.thought_signature.take()),
            (
                "thoughtSignature",
                self.thought_signature_in_camel_case.take(),
            ),
        ];
        spelled
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect()
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub(super) name: Option<String>,
    /// JSON text. Some servers send the object itself.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
}

impl Delta {
    /// Returns the added text. A refusal is text of the answer as well, because the user must see
    /// it.
    pub(super) fn text(&mut self) -> String {
        match self.content.take() {
            Some(Text::Plain(text)) if !text.is_empty() => text,
            Some(Text::Parts(parts)) => parts.into_iter().filter_map(|part| part.text).collect(),
            _ => self.refusal.take().unwrap_or_default(),
        }
    }

    /// Returns the reasoning details as received.
    pub(super) fn details(&self) -> Option<&Vec<Value>> {
        self.reasoning_details.as_ref()?.as_array()
    }

    /// Returns the added reasoning. Servers that send several fields repeat the same text.
    pub(super) fn reasoning(&mut self) -> String {
        let details = self.reasoning_details.take();
        let details = details
            .as_ref()
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|part| part.get("text")?.as_str());
        [self.reasoning_content.take(), self.reasoning.take()]
            .into_iter()
            .filter_map(|spelled| match spelled {
                Some(Value::String(text)) if !text.is_empty() => Some(text),
                _ => None,
            })
            .next()
            .unwrap_or_else(|| details.collect())
    }
}

impl FunctionDelta {
    /// Returns the added argument text.
    pub(super) fn argument_text(self) -> String {
        match self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ChatCompletionsUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    prompt_tokens_details: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient")]
    completion_tokens_details: Option<Map<String, Value>>,
    /// Cached input tokens in an alternative field.
    #[serde(default, deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
}

impl From<ChatCompletionsUsage> for UsageMetadata {
    fn from(usage: ChatCompletionsUsage) -> Self {
        let (input, output) = (
            usage.prompt_tokens.unwrap_or(0),
            usage.completion_tokens.unwrap_or(0),
        );
        let part =
            |details: &Option<Map<String, Value>>, key: &str| count_of(details.as_ref()?.get(key)?);
        let parts = |parts: &[(&str, Option<u64>)]| {
            parts
                .iter()
                .filter_map(|(name, count)| Some(((*name).to_owned(), Value::from((*count)?))))
                .collect::<Map<_, _>>()
        };
        let cached =
            part(&usage.prompt_tokens_details, "cached_tokens").or(usage.prompt_cache_hit_tokens);
        Self {
            input_tokens: input,
            output_tokens: output,
            total_tokens: usage
                .total_tokens
                .unwrap_or_else(|| input.saturating_add(output)),
            input_token_details: parts(&[
                ("audio", part(&usage.prompt_tokens_details, "audio_tokens")),
                ("cache_read", cached),
            ]),
            output_token_details: parts(&[
                (
                    "audio",
                    part(&usage.completion_tokens_details, "audio_tokens"),
                ),
                (
                    "reasoning",
                    part(&usage.completion_tokens_details, "reasoning_tokens"),
                ),
            ]),
        }
    }
}
