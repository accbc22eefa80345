//! Agent that runs the loop; built once and shared by all of its runs.

use std::ops::Deref;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::driver::drive;
use super::graph::graph_of;
use super::machine::{LoopMachine, RunBounds};
use super::nodes::LoopNodes;
use crate::messages::Message;
use crate::middlewares::MiddlewareStack;
use crate::models::{ChatModel, CircuitBreaker, RetryPolicy, ToolSchema};
use crate::runtime::agent::{
    Agent, AgentEvent, AgentGraph, AgentInput, AgentStream, InputFacts, RunContext,
};
use crate::runtime::runs::GotoTarget;
use crate::state::{StateUpdate, ThreadState};
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

impl Deref for Assembly {
    type Target = AgentDependencies;
    fn deref(&self) -> &AgentDependencies {
        &self.dependencies
    }
}

/// Agent that runs the loop. Clones share the dependencies.
#[derive(Debug, Clone)]
pub struct LoopAgent(Arc<Assembly>);

impl LoopAgent {
    /// Creates an agent with these dependencies.
    pub fn new(dependencies: AgentDependencies) -> Self {
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
        Self(Arc::new(Assembly {
            facts,
            schemas: dependencies.tools.schemas(),
            nodes: Arc::new(LoopNodes::of(&dependencies.stack)),
            dependencies,
        }))
    }
}

impl Agent for LoopAgent {
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream {
        AgentStream::new(events, drive(self.0.clone(), input, ctx).boxed())
    }

    fn settle(&self, state: &ThreadState, partial: Option<Message>) -> StateUpdate {
        let mut update = StateUpdate::default();
        for middleware in self.0.stack.iter() {
            let more = middleware.settle(state, partial.as_ref());
            update.messages.extend(more.messages);
            update.channels.extend(more.channels);
        }
        update.messages.splice(0..0, partial);
        update
    }

    fn complete_input(&self, message: &Message, facts: &InputFacts) -> Option<Message> {
        self.0.stack.iter().fold(None, |completed, middleware| {
            let more = middleware.complete_input(completed.as_ref().unwrap_or(message), facts);
            more.or(completed)
        })
    }

    fn nodes(&self) -> Vec<String> {
        self.0.nodes.names()
    }

    fn parked(&self, visits: Vec<GotoTarget>, seed: Uuid) -> Option<Value> {
        let mut machine = LoopMachine::new(self.0.nodes.clone(), RunBounds::default(), seed);
        machine.go_to(visits).ok().map(|()| machine.save())
    }

    fn graph(&self) -> AgentGraph {
        graph_of(
            &self.0.nodes,
            self.0.tools.names().map(str::to_owned).collect(),
        )
    }
}
