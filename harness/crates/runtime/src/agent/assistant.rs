//! Descriptions of assistants, and the errors of resolving them.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

/// Error of resolving an assistant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownAssistant {
    /// No assistant has this name or id.
    #[error("assistant {0:?} not found")]
    NotFound(String),
    /// The text is not a valid assistant name.
    #[error("assistant name {0:?} must match [A-Za-z0-9_-]{{1,64}}")]
    InvalidName(String),
    /// The run requests a model that is not configured.
    #[error("model {0:?} is not in the configured model allowlist")]
    UnknownModel(String),
    /// The assistant exists but cannot run as configured.
    #[error("assistant {name:?} cannot start: {reason}")]
    Unusable {
        /// Name of the assistant.
        name: String,
        /// Problem to fix.
        reason: String,
    },
    /// The content of the assistant is invalid.
    #[error("assistant {name:?} is invalid ({} findings)", findings.len())]
    Invalid {
        /// Name of the assistant.
        name: String,
        /// All problems of the content, for clients.
        findings: Vec<Value>,
    },
}

/// Description of an assistant for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantInfo {
    /// Name of the assistant, also the id of its graph.
    pub name: String,
    /// One line of description.
    pub description: Option<String>,
}

/// Kind of an assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AssistantKind {
    /// An agent of the installation, such as the lead agent.
    #[default]
    Agent,
    /// An agent that a user created.
    Custom,
    /// A flow.
    Flow,
}

/// Description of an assistant with the facts that not every resolver has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssistantDetails {
    /// Name and description.
    pub info: AssistantInfo,
    /// Kind of the assistant.
    pub kind: AssistantKind,
    /// Time of creation; `None` for an assistant that exists since the process started.
    pub created_at: Option<DateTime<Utc>>,
    /// Time of the last change; `None` if it never changed.
    pub updated_at: Option<DateTime<Utc>>,
    /// Metadata that clients see, for example the version of the content.
    pub metadata: Map<String, Value>,
}

impl From<AssistantInfo> for AssistantDetails {
    fn from(info: AssistantInfo) -> Self {
        Self {
            info,
            kind: AssistantKind::default(),
            created_at: None,
            updated_at: None,
            metadata: Map::new(),
        }
    }
}
