//! An agent as its parts: assembled once, shared by all of its runs.

use std::ops::Deref;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::drawing::drawing;
use super::driver::drive;
use super::machine::{LoopMachine, RunBounds};
use super::nodes::LoopNodes;
use crate::messages::Message;
use crate::middlewares::MiddlewareStack;
use crate::models::{ChatModel, CircuitBreaker, RetryPolicy, ToolSchema};
use crate::runtime::agent::{
    Agent, AgentEvent, AgentGraph, AgentInput, AgentStream, InputFacts, RunContext,
};
use crate::runtime::runs::Visit;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::ToolRegistry;

/// How an agent asks its model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSettings {
    /// Whether the model may think, where it can.
    pub thinking: bool,
    /// `minimal`, `low`, `medium`, `high`, where the model takes it.
    pub reasoning_effort: Option<String>,
    /// Overrides of the entry's own parameters, such as `temperature`.
    pub overrides: Map<String, Value>,
}

/// How patient an agent is with its model's provider.
#[derive(Debug, Clone, Default)]
pub struct Patience {
    /// When a failed call is made again.
    pub policy: RetryPolicy,
    /// The model's circuit, shared by all who ask that model.
    pub breaker: Option<Arc<CircuitBreaker>>,
}

/// What an agent is made of. Nothing in it belongs to a run.
#[derive(Debug)]
pub struct AgentParts {
    /// The agent's name, shown to clients.
    pub name: String,
    /// Who the journal says asks the model, such as `lead_agent`.
    pub caller: String,
    /// The model.
    pub model: Arc<dyn ChatModel>,
    /// How the model is asked.
    pub settings: ModelSettings,
    /// Patience with the model's provider.
    pub patience: Patience,
    /// The system text.
    pub system: Option<Arc<str>>,
    /// The tools.
    pub tools: ToolRegistry,
    /// The middlewares.
    pub stack: MiddlewareStack,
}

/// The parts, and what follows from them.
#[derive(Debug)]
pub struct Assembly {
    pub(super) parts: AgentParts,
    pub(super) schemas: Arc<[ToolSchema]>,
    pub(super) nodes: Arc<LoopNodes>,
    /// What viewers learn of the model and the agent with every message.
    pub(super) facts: Map<String, Value>,
}

impl Deref for Assembly {
    type Target = AgentParts;
    fn deref(&self) -> &AgentParts {
        &self.parts
    }
}

/// An agent that runs the loop. Cloning shares the parts.
#[derive(Debug, Clone)]
pub struct LoopAgent(Arc<Assembly>);

impl LoopAgent {
    /// An agent of these parts.
    pub fn new(parts: AgentParts) -> Self {
        let info = parts.model.info();
        let facts = [
            ("ls_provider", json!(info.provider)),
            ("ls_model_name", json!(info.model)),
            ("ls_model_type", json!("chat")),
            ("model_name", json!(info.name)),
            ("agent_name", json!(parts.name)),
            ("thinking_enabled", json!(parts.settings.thinking)),
            ("reasoning_effort", json!(parts.settings.reasoning_effort)),
        ];
        let facts = facts
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        Self(Arc::new(Assembly {
            facts,
            schemas: parts.tools.schemas(),
            nodes: Arc::new(LoopNodes::of(&parts.stack)),
            parts,
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

    fn parked(&self, visits: Vec<Visit>, seed: Uuid) -> Option<Value> {
        let mut machine = LoopMachine::new(self.0.nodes.clone(), RunBounds::default(), seed);
        machine.go_to(visits).ok().map(|()| machine.save())
    }

    fn graph(&self) -> AgentGraph {
        drawing(
            &self.0.nodes,
            self.0.tools.names().map(str::to_owned).collect(),
        )
    }
}
