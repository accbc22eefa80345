//! Fields of a message.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Content, InvalidToolCall, ToolCall, UsageMetadata};

/// Result status of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolStatus {
    /// The tool succeeded.
    #[default]
    Success,
    /// The tool failed; the content states the reason.
    Error,
}

/// Kind of a message, with its specific fields.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageKind {
    /// Message of the user.
    Human,
    /// Message of the framework, with system authority.
    System,
    /// Message of a model.
    Ai {
        /// Calls with valid arguments.
        tool_calls: Vec<ToolCall>,
        /// Calls with invalid arguments.
        invalid_tool_calls: Vec<InvalidToolCall>,
        /// Token usage, if the provider reported it.
        usage_metadata: Option<Box<UsageMetadata>>,
    },
    /// Result of a tool.
    Tool {
        /// Id of the call.
        tool_call_id: String,
        /// Data for the user interface that the model does not see.
        artifact: Value,
        /// Result status.
        status: ToolStatus,
    },
    /// Not a message: removes the message with this id (or all, [`REMOVE_ALL`](super::REMOVE_ALL)) when reduced into a state.
    Remove,
}

/// Fields of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageBody {
    /// Id within a thread; reducers set it if absent.
    pub id: Option<String>,
    /// Text or blocks.
    pub content: Content,
    /// Name of the speaker, or of the tool.
    pub name: Option<String>,
    /// Additional data of the framework and the client.
    pub additional_kwargs: Map<String, Value>,
    /// Additional data of the provider.
    pub response_metadata: Map<String, Value>,
    /// Kind, with its specific fields.
    pub kind: MessageKind,
}

impl MessageKind {
    /// Returns the type name on the wire.
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
    /// Creates a message of `kind` with content only.
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

    /// Reports whether `additional_kwargs[key]` is `true`.
    pub fn flag(&self, key: &str) -> bool {
        self.additional_kwargs
            .get(key)
            .is_some_and(|value| value == &Value::Bool(true))
    }

    /// Returns a copy with another text: see [`Content::with_text`].
    pub(super) fn with_text(&self, text: String) -> Self {
        Self {
            id: self.id.clone(),
            content: self.content.with_text(text),
            name: self.name.clone(),
            additional_kwargs: self.additional_kwargs.clone(),
            response_metadata: self.response_metadata.clone(),
            kind: self.kind.clone(),
        }
    }
}
