//! One message, immutable and cheap to clone, whose JSON is made once and shared from then on.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::content::json_type;
use super::invalid::{InvalidMessage, TYPES, check, echo};
use super::{Content, InvalidToolCall, TextSize, ToolCall, UsageMetadata};

/// The id of a remove message that drops everything before it.
pub const REMOVE_ALL: &str = "__remove_all__";

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The tool did what was asked.
    #[default]
    Success,
    /// It did not; the content says why.
    Error,
}

/// What sets the kinds of messages apart.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageKind {
    /// From the user.
    Human,
    /// From the framework, with a system's authority.
    System,
    /// From a model.
    Ai {
        /// Calls with readable arguments.
        tool_calls: Vec<ToolCall>,
        /// Calls with unreadable arguments.
        invalid_tool_calls: Vec<InvalidToolCall>,
        /// What the call cost, when the provider said so.
        usage_metadata: Option<UsageMetadata>,
    },
    /// A tool's result.
    Tool {
        /// The call it answers.
        tool_call_id: String,
        /// Data for the interface that the model does not see.
        artifact: Value,
        /// Success or error.
        status: ToolStatus,
    },
    /// Not a message: removes the message with this id (or all, [`REMOVE_ALL`]) when reduced into a state.
    Remove,
}

/// The fields of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageBody {
    /// Identity within a thread; reducers fill it in when absent.
    pub id: Option<String>,
    /// Text or blocks.
    pub content: Content,
    /// Speaker name, or the tool's name.
    pub name: Option<String>,
    /// Free map of the framework and the client.
    pub additional_kwargs: Map<String, Value>,
    /// Free map of the provider.
    pub response_metadata: Map<String, Value>,
    /// What kind of message, with its own fields.
    pub kind: MessageKind,
}

/// A message. Clones share one allocation, and so does its JSON.
#[derive(Debug, Clone)]
pub struct Message(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    body: MessageBody,
    json: OnceLock<Box<RawValue>>,
    size: OnceLock<TextSize>,
    framed: OnceLock<Message>,
}

impl Deref for Message {
    type Target = MessageBody;
    fn deref(&self) -> &MessageBody {
        &self.0.body
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.body == other.0.body
    }
}

impl From<MessageBody> for Message {
    fn from(body: MessageBody) -> Self {
        Self(Arc::new(Inner {
            body,
            json: OnceLock::new(),
            size: OnceLock::new(),
            framed: OnceLock::new(),
        }))
    }
}

impl Message {
    /// A user message with plain text.
    pub fn human(content: impl Into<Content>) -> Self {
        MessageBody::new(MessageKind::Human, content).into()
    }

    /// A system message with plain text.
    pub fn system(content: impl Into<Content>) -> Self {
        MessageBody::new(MessageKind::System, content).into()
    }

    /// A model's answer without calls.
    pub fn ai(content: impl Into<Content>) -> Self {
        MessageBody::new(
            MessageKind::Ai {
                tool_calls: vec![],
                invalid_tool_calls: vec![],
                usage_metadata: None,
            },
            content,
        )
        .into()
    }

    /// A tool's answer to `call`.
    pub fn tool(call: &ToolCall, content: impl Into<Content>, status: ToolStatus) -> Self {
        let mut body = MessageBody::new(
            MessageKind::Tool {
                tool_call_id: call.id.clone(),
                artifact: Value::Null,
                status,
            },
            content,
        );
        body.name = Some(call.name.clone());
        body.into()
    }

    /// A remove marker for the message `id`.
    pub fn remove(id: impl Into<String>) -> Self {
        let mut body = MessageBody::new(MessageKind::Remove, "");
        body.id = Some(id.into());
        body.into()
    }

    /// A copy with some fields changed.
    pub fn with(&self, change: impl FnOnce(&mut MessageBody)) -> Self {
        let mut body = self.0.body.clone();
        change(&mut body);
        body.into()
    }

    /// The message as JSON, made at the first call.
    pub fn json(&self) -> &RawValue {
        self.0.json.get_or_init(|| {
            serde_json::value::to_raw_value(&self.0.body)
                .unwrap_or_else(|_| RawValue::NULL.to_owned())
        })
    }

    /// How much there is to read in it, measured at the first call.
    pub fn size(&self) -> TextSize {
        *self.0.size.get_or_init(|| TextSize::of_message(self))
    }

    /// The message as models get to read it, made by `frame` at the first call: what a person wrote, pictures included, is not
    /// copied again with every request of its conversation.
    pub(crate) fn framed(&self, frame: impl FnOnce(&Self) -> Self) -> &Self {
        self.0.framed.get_or_init(|| frame(self))
    }

    /// A message from the JSON that [`Message::json`] once gave, which stays its JSON: nothing is serialized again.
    pub fn from_stored(json: &str) -> serde_json::Result<Self> {
        let message: Self = serde_json::from_str(json)?;
        // Just made, so nobody else can have set it.
        let _first = message.0.json.set(RawValue::from_string(json.to_owned())?);
        Ok(message)
    }

    /// The type word on the wire: `human`, `system`, `ai`, `tool`, `remove`.
    pub fn type_name(&self) -> &'static str {
        self.0.body.kind.type_name()
    }

    /// The calls of an AI message; none for other kinds.
    pub fn tool_calls(&self) -> &[ToolCall] {
        match &self.kind {
            MessageKind::Ai { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }

    /// The call that a tool message answers.
    pub fn tool_call_id(&self) -> Option<&str> {
        match &self.kind {
            MessageKind::Tool { tool_call_id, .. } => Some(tool_call_id),
            _ => None,
        }
    }

    /// Token counts of an AI message.
    pub fn usage(&self) -> Option<&UsageMetadata> {
        match &self.kind {
            MessageKind::Ai { usage_metadata, .. } => usage_metadata.as_ref(),
            _ => None,
        }
    }

    /// Whether it is a model's message.
    pub fn is_ai(&self) -> bool {
        matches!(self.kind, MessageKind::Ai { .. })
    }

    /// Whether it is a user's message.
    pub fn is_human(&self) -> bool {
        matches!(self.kind, MessageKind::Human)
    }

    /// Whether `additional_kwargs[key]` is `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.additional_kwargs
            .get(key)
            .is_some_and(|value| value == &Value::Bool(true))
    }
}

impl MessageKind {
    /// The type word on the wire.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::System => "system",
            Self::Ai { .. } => "ai",
            Self::Tool { .. } => "tool",
            Self::Remove => "remove",
        }
    }
}

impl MessageBody {
    /// A message of `kind` with nothing but content.
    pub fn new(kind: MessageKind, content: impl Into<Content>) -> Self {
        Self {
            id: None,
            content: content.into(),
            name: None,
            additional_kwargs: Map::new(),
            response_metadata: Map::new(),
            kind,
        }
    }
}

/// The field order of the recordings: common fields, then what is the kind's own.
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
    usage_metadata: Option<&'a Option<UsageMetadata>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ToolStatus>,
}

#[cfg(test)]
std::thread_local! {
    /// How many messages this thread has turned into JSON: what tests measure work by.
    pub(crate) static SERIALIZED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl Serialize for MessageBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[cfg(test)]
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

/// Every field any kind may have, as lenient as the recorded servers are about what is absent or null.
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
                usage_metadata: loose.usage_metadata,
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
    /// Reads what clients send: an object with `type` or `role`, a bare string (human), or a `[role, text]` pair.
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
