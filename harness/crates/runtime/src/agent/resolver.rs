//! Port that resolves assistant names to agents.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::assistant::{AssistantDetails, AssistantInfo, UnknownAssistant};
use super::pin::AssistantPin;
use super::port::Agent;

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

    /// Returns the current version of an assistant with versions, and `None` for an assistant
    /// without versions. Called for the bound actor before a run becomes durable; an error refuses
    /// the run.
    async fn pin(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Option<AssistantPin>, UnknownAssistant> {
        Ok(None)
    }

    /// Returns the agent of the pinned version, or of the current one without a pin. A pinned
    /// version may belong to an assistant that has been changed or deleted since. The default
    /// ignores the pin and calls [`resolve`](Self::resolve).
    async fn resolve_pinned(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
        _pin: Option<&AssistantPin>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        self.resolve(assistant, options).await
    }

    /// Returns all assistants of the bound actor in a stable order, for display.
    async fn list(&self) -> Vec<AssistantInfo>;

    /// Returns the assistant of this name that the bound actor may use. Runs call it, so an
    /// implementation should not read other assistants. The default searches
    /// [`list`](Self::list).
    async fn find(&self, name: &str) -> Option<AssistantInfo> {
        let mut all = self.list().await.into_iter();
        all.find(|info| info.name == name)
    }

    /// Returns the assistant of requests that name none: the first of [`list`](Self::list). An
    /// implementation should not read other assistants.
    async fn default_assistant(&self) -> Option<AssistantInfo> {
        self.list().await.into_iter().next()
    }

    /// Returns the details of the assistant that [`find`](Self::find) returns.
    async fn details(&self, name: &str) -> Option<AssistantDetails> {
        self.find(name).await.map(AssistantDetails::from)
    }

    /// Returns the details of all assistants, in the order of [`list`](Self::list).
    async fn list_details(&self) -> Vec<AssistantDetails> {
        let all = self.list().await.into_iter();
        all.map(AssistantDetails::from).collect()
    }

    /// Discards cached agents. Active runs are not affected.
    fn forget(&self) {}
}

#[cfg(test)]
#[path = "resolver_tests.rs"]
mod tests;
