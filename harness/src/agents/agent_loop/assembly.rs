//! Dependencies of an agent, and the values that all of its runs derive from them.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::nodes::LoopNodes;
use crate::middlewares::MiddlewareStack;
use crate::models::{ChatModel, CircuitBreaker, RetryPolicy, ToolSchema};
use crate::tools::ToolRegistry;

/// Settings of model calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Enables thinking for models that support it.
    pub thinking: bool,
    /// `minimal`, `low`, `medium` or `high`, for models that support it.
    pub reasoning_effort: Option<String>,
    /// Overrides of the model entry's parameters, such as `temperature`.
    pub overrides: Map<String, Value>,
}

/// Retry policy and circuit breaker of model calls.
#[derive(Debug, Clone, Default)]
pub struct RetrySettings {
    /// Policy of retries.
    pub policy: RetryPolicy,
    /// Circuit breaker, shared by all callers of the model.
    pub breaker: Option<Arc<CircuitBreaker>>,
}

/// Dependencies of an agent. None of them belongs to a single run.
#[derive(Debug)]
pub struct AgentDependencies {
    /// Name of the agent, visible to clients.
    pub name: String,
    /// Caller name of model calls in the journal, such as `lead_agent`.
    pub caller: String,
    /// Model of the agent.
    pub model: Arc<dyn ChatModel>,
    /// Settings of model calls.
    pub settings: ModelSettings,
    /// Retry settings of model calls.
    pub patience: RetrySettings,
    /// System prompt.
    pub system: Option<Arc<str>>,
    /// Tools of the agent.
    pub tools: ToolRegistry,
    /// Middlewares, outermost first.
    pub stack: MiddlewareStack,
}

/// Dependencies and the values derived from them.
#[derive(Debug)]
pub struct Assembly {
    pub(super) dependencies: AgentDependencies,
    pub(super) schemas: Arc<[ToolSchema]>,
    pub(super) nodes: Arc<LoopNodes>,
    /// Facts about model and agent in the metadata of every message.
    pub(super) facts: Map<String, Value>,
}

impl Assembly {
    /// Derives the values from the dependencies.
    pub(super) fn new(dependencies: AgentDependencies) -> Self {
        let info = dependencies.model.info();
        let facts = [
            ("ls_provider", json!(info.provider)),
            ("ls_model_name", json!(info.model)),
            ("ls_model_type", json!("chat")),
            ("model_name", json!(info.name)),
            ("agent_name", json!(dependencies.name)),
            ("thinking_enabled", json!(dependencies.settings.thinking)),
            (
                "reasoning_effort",
                json!(dependencies.settings.reasoning_effort),
            ),
        ];
        let facts = facts
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        Self {
            facts,
            schemas: dependencies.tools.schemas(),
            nodes: Arc::new(LoopNodes::of(&dependencies.stack)),
            dependencies,
        }
    }
}

impl Deref for Assembly {
    type Target = AgentDependencies;
    fn deref(&self) -> &AgentDependencies {
        &self.dependencies
    }
}
