//! Earlier answers of the model in chat completions, serialized without copies of their texts.

use std::borrow::Cow;

use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::calls::{CALL_EXTRAS_KWARG, MAX_ID_CHARS};
use super::decode::REASONING_DETAILS_KWARG;
use super::dialect::Dialect;
use super::user_message::sent_name;
use crate::http::{short_id, tool_name};
use deerflow_core::messages::{InvalidToolCall, MessageBody, ToolCall, kwargs};

/// Answer as the API reads it.
#[derive(Debug)]
pub(super) struct AssistantMessage<'a> {
    message: &'a MessageBody,
    calls: Vec<Call<'a>>,
    dialect: Dialect,
}

/// Tool call as the API reads it.
#[derive(Debug)]
struct Call<'a> {
    id: Cow<'a, str>,
    function: Function<'a>,
    /// Fields that were received with the call and are sent back.
    extras: Option<&'a Map<String, Value>>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: String,
    #[serde(serialize_with = "json_text")]
    arguments: Cow<'a, Map<String, Value>>,
}

impl<'a> AssistantMessage<'a> {
    /// Returns the answer `message` with its tool calls.
    pub(super) fn new(
        message: &'a MessageBody,
        tool_calls: &'a [ToolCall],
        invalid_tool_calls: &'a [InvalidToolCall],
        dialect: Dialect,
    ) -> Self {
        let extras = message
            .additional_kwargs
            .get(CALL_EXTRAS_KWARG)
            .filter(|_| dialect.returns_call_extras);
        let valid = tool_calls.iter().map(|call| {
            let arguments = Cow::Borrowed(&call.args);
            Call::new(&call.id, &call.name, arguments, extras)
        });
        let invalid = invalid_tool_calls.iter().map(|call| {
            let id = call.id.as_deref().unwrap_or_default();
            let name = call.name.as_deref().unwrap_or_default();
            // Strict servers parse the arguments of earlier calls.
            let text = call.args.as_deref().unwrap_or_default();
            let arguments = [("unreadable_arguments".to_owned(), text.into())];
            Call::new(id, name, Cow::Owned(Map::from_iter(arguments)), extras)
        });
        Self {
            message,
            calls: valid.chain(invalid).collect(),
            dialect,
        }
    }

    /// Returns the field and the text of the reasoning that the server requires back.
    fn reasoning(&self) -> Option<(&'static str, &str)> {
        let reasoning = self
            .message
            .additional_kwargs
            .get(kwargs::REASONING_CONTENT)
            .and_then(Value::as_str)
            .filter(|reasoning| !reasoning.is_empty());
        let reasoning = reasoning.or(self.dialect.reasoning_placeholder);
        self.dialect.reasoning_field.zip(reasoning)
    }
}

impl Serialize for AssistantMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("role", "assistant")?;
        let text = self.message.content.text_cow();
        let content = Some(text).filter(|text| !text.is_empty() || self.calls.is_empty());
        object.serialize_entry("content", &content)?;
        if let Some((field, reasoning)) = self.reasoning() {
            object.serialize_entry(field, reasoning)?;
        }
        let details = self.message.additional_kwargs.get(REASONING_DETAILS_KWARG);
        if let Some(details) = details.filter(|_| self.dialect.returns_reasoning_details) {
            object.serialize_entry("reasoning_details", details)?;
        }
        if !self.calls.is_empty() {
            object.serialize_entry("tool_calls", &self.calls)?;
        }
        if let Some(name) = sent_name(self.message, self.dialect) {
            object.serialize_entry("name", &name)?;
        }
        object.end()
    }
}

impl<'a> Call<'a> {
    fn new(
        id: &'a str,
        name: &str,
        arguments: Cow<'a, Map<String, Value>>,
        extras: Option<&'a Value>,
    ) -> Self {
        Self {
            id: short_id(id, MAX_ID_CHARS),
            function: Function {
                name: tool_name(name),
                arguments,
            },
            extras: extras.and_then(|extras| extras.get(id)?.as_object()),
        }
    }
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("id", &self.id)?;
        object.serialize_entry("type", "function")?;
        object.serialize_entry("function", &self.function)?;
        // A client can write these fields, and servers reject an object with a key twice.
        let is_own = |key: &str| matches!(key, "id" | "type" | "function");
        for (key, value) in self.extras.into_iter().flatten() {
            if !is_own(key) {
                object.serialize_entry(key, value)?;
            }
        }
        object.end()
    }
}

/// Serializes a value as the text of its JSON.
fn json_text<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let text = serde_json::to_string(value).map_err(S::Error::custom)?;
    serializer.serialize_str(&text)
}
