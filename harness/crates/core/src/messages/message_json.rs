//! JSON form of a message: the field order of the wire, and the lenient parser.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::content::json_type;
use super::invalid::{InvalidMessage, TYPES, check, echo};
use super::{
    Content, InvalidToolCall, Message, MessageBody, MessageKind, ToolCall, ToolStatus,
    UsageMetadata,
};

/// Message on the wire. The field order is that of recorded servers: common fields, then those of
/// the kind.
#[derive(Serialize)]
struct WireMessage<'a> {
    content: &'a Content,
    additional_kwargs: &'a Map<String, Value>,
    response_metadata: &'a Map<String, Value>,
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a Option<String>,
    id: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [ToolCall]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invalid_tool_calls: Option<&'a [InvalidToolCall]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage_metadata: Option<&'a Option<Box<UsageMetadata>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ToolStatus>,
}

#[cfg(any(test, feature = "testkit"))]
std::thread_local! {
    /// Number of messages serialized by the current OS thread, for tests that count serializations.
    pub static SERIALIZED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Serialize for MessageBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[cfg(any(test, feature = "testkit"))]
        SERIALIZED.set(SERIALIZED.get() + 1);
        let mut wire = WireMessage {
            content: &self.content,
            additional_kwargs: &self.additional_kwargs,
            response_metadata: &self.response_metadata,
            kind: self.kind.type_name(),
            name: &self.name,
            id: &self.id,
            tool_calls: None,
            invalid_tool_calls: None,
            usage_metadata: None,
            tool_call_id: None,
            artifact: None,
            status: None,
        };
        match &self.kind {
            MessageKind::Ai {
                tool_calls,
                invalid_tool_calls,
                usage_metadata,
            } => {
                wire.tool_calls = Some(tool_calls);
                wire.invalid_tool_calls = Some(invalid_tool_calls);
                wire.usage_metadata = Some(usage_metadata);
            }
            MessageKind::Tool {
                tool_call_id,
                artifact,
                status,
            } => {
                wire.tool_call_id = Some(tool_call_id);
                wire.artifact = Some(artifact);
                wire.status = Some(*status);
            }
            MessageKind::Human | MessageKind::System | MessageKind::Remove => {}
        }
        wire.serialize(serializer)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

/// Fields of all message kinds. Absent and null values are accepted wherever recorded servers
/// accept them.
#[derive(Deserialize)]
struct LooseMessage {
    #[serde(rename = "type", alias = "role")]
    kind: Option<String>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    additional_kwargs: Option<Map<String, Value>>,
    #[serde(default)]
    response_metadata: Option<Map<String, Value>>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    invalid_tool_calls: Option<Vec<InvalidToolCall>>,
    #[serde(default)]
    usage_metadata: Option<UsageMetadata>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    artifact: Value,
    #[serde(default)]
    status: Option<ToolStatus>,
}

impl TryFrom<LooseMessage> for Message {
    type Error = InvalidMessage;

    fn try_from(loose: LooseMessage) -> Result<Self, InvalidMessage> {
        let word = loose
            .kind
            .ok_or_else(|| InvalidMessage::whole("a message needs a \"type\" or a \"role\""))?;
        let kind = match word.as_str() {
            "human" | "user" => MessageKind::Human,
            "system" | "developer" => MessageKind::System,
            "ai" | "assistant" | "AIMessageChunk" => MessageKind::Ai {
                tool_calls: loose.tool_calls.unwrap_or_default(),
                invalid_tool_calls: loose.invalid_tool_calls.unwrap_or_default(),
                usage_metadata: loose.usage_metadata.map(Box::new),
            },
            "tool" | "function" => MessageKind::Tool {
                tool_call_id: loose.tool_call_id.ok_or_else(|| {
                    InvalidMessage::whole("a tool message needs a \"tool_call_id\"")
                })?,
                artifact: loose.artifact,
                status: loose.status.unwrap_or_default(),
            },
            "remove" => MessageKind::Remove,
            other => {
                return Err(InvalidMessage::whole(format!(
                    "unknown message type {}, expected one of {TYPES}",
                    echo(other)
                )));
            }
        };
        if matches!(kind, MessageKind::Remove) && loose.id.is_none() {
            return Err(InvalidMessage::whole("a remove message needs an \"id\""));
        }
        Ok(MessageBody {
            id: loose.id,
            content: loose.content.unwrap_or_default(),
            name: loose.name,
            additional_kwargs: loose.additional_kwargs.unwrap_or_default(),
            response_metadata: loose.response_metadata.unwrap_or_default(),
            kind,
        }
        .into())
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let loose = LooseMessage::deserialize(deserializer)?;
        Message::try_from(loose).map_err(serde::de::Error::custom)
    }
}

impl Message {
    /// Parses a message as clients send it: an object with `type` or `role`, a bare string (human),
    /// or a `[role, text]` pair.
    pub fn coerce(value: Value) -> Result<Self, InvalidMessage> {
        match value {
            Value::String(text) => Ok(Self::human(text)),
            Value::Array(pair) => match <[Value; 2]>::try_from(pair) {
                Ok([role @ Value::String(_), content]) => {
                    let object = Map::from_iter([
                        ("role".to_owned(), role),
                        ("content".to_owned(), content),
                    ]);
                    Self::coerce(Value::Object(object))
                }
                _ => Err(InvalidMessage::whole(
                    "a message given as a list must be [role, content]",
                )),
            },
            Value::Object(fields) => {
                check(&fields)?;
                serde_json::from_value(Value::Object(fields))
                    .map_err(|error| InvalidMessage::whole(error.to_string()))
            }
            other => Err(InvalidMessage::whole(format!(
                "a message must be an object, not {}",
                json_type(&other)
            ))),
        }
    }
}
