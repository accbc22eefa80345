//! Resolution of assistant names to agents.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::port::Agent;

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
}

/// Description of an assistant for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantInfo {
    /// Name of the assistant, also the id of its graph.
    pub name: String,
    /// One line of description.
    pub description: Option<String>,
}

/// Resolves an assistant's name and a run's options to an agent, built once and shared.
///
/// ```
/// use std::sync::Arc;
///
/// use async_trait::async_trait;
/// use deerflow_runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
/// use serde_json::{Map, Value};
///
/// /// Resolver with one assistant.
/// #[derive(Debug)]
/// struct OneAssistant(Arc<dyn Agent>);
///
/// #[async_trait]
/// impl AgentResolver for OneAssistant {
///     async fn resolve(
///         &self,
///         assistant: &str,
///         _options: &Map<String, Value>,
///     ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
///         match assistant {
///             "counter" => Ok(self.0.clone()),
///             other => Err(UnknownAssistant::NotFound(other.to_owned())),
///         }
///     }
///
///     async fn list(&self) -> Vec<AssistantInfo> {
///         vec![AssistantInfo { name: "counter".to_owned(), description: None }]
///     }
/// }
/// ```
#[async_trait]
pub trait AgentResolver: Send + Sync + fmt::Debug {
    /// Returns the agent. `assistant` is a name; the gateway has resolved ids to names.
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant>;

    /// Returns all assistants in a stable order.
    async fn list(&self) -> Vec<AssistantInfo>;

    /// Discards cached agents. Active runs are not affected.
    fn forget(&self) {}
}
