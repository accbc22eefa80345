//! Error of a turn, a node or a run of a flow.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum characters of a message that comes from outside.
const MAX_MESSAGE_CHARS: usize = 2_000;

/// Code of a turn whose session the other side does not know. The other side has not executed the
/// turn; the engine creates another session and repeats it once.
pub const SESSION_NOT_FOUND: &str = "session_not_found";

/// Error with a stable code. Never contains keys, headers or request bodies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct FlowError {
    /// Stable code, such as `turn_failed` or `PI_MONO_TIMEOUT`.
    pub code: String,
    /// Message for people.
    pub message: String,
    /// Part that failed.
    pub category: ErrorCategory,
    /// `true` if a repetition may succeed.
    pub retryable: bool,
    /// Node, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// Agent, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Adapter, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_kind: Option<String>,
    /// Facts, such as `httpStatus`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}

/// Part of the system that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorCategory {
    /// An adapter or its transport.
    Adapter,
    /// A model.
    Model,
    /// A tool.
    Tool,
    /// A budget.
    Budget,
    /// The engine.
    Engine,
    /// The document or its configuration.
    Validation,
    /// Not known.
    Unknown,
}

impl FlowError {
    /// Creates an error that is not retryable. Long messages are truncated.
    pub fn new(
        code: impl Into<String>,
        category: ErrorCategory,
        message: impl Into<String>,
    ) -> Self {
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(MAX_MESSAGE_CHARS) {
            message.truncate(end);
        }
        Self {
            code: code.into(),
            message,
            category,
            retryable: false,
            node_id: None,
            agent_id: None,
            adapter_kind: None,
            details: Map::new(),
        }
    }

    /// Marks the error as retryable or not.
    #[must_use]
    pub fn retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// Names the node.
    #[must_use]
    pub fn at_node(mut self, node: impl Into<String>) -> Self {
        self.node_id = Some(node.into());
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn with_detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}
