//! An agent as its parts: assembled once, shared by all of its runs.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::driver::drive;
use super::nodes::LoopNodes;
use crate::messages::Message;
use crate::middlewares::MiddlewareStack;
use crate::models::{ChatModel, ToolSchema};
use crate::runtime::agent::{Agent, AgentEvent, AgentInput, AgentStream, RunContext};
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

/// The parts of an agent. Nothing in it belongs to a run.
#[derive(Debug)]
pub struct Assembly {
    pub(super) name: String,
    pub(super) caller: String,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) settings: ModelSettings,
    pub(super) system: Option<Arc<str>>,
    pub(super) tools: ToolRegistry,
    pub(super) schemas: Arc<[ToolSchema]>,
    pub(super) stack: MiddlewareStack,
    pub(super) nodes: Arc<LoopNodes>,
    /// What viewers learn of the model and the agent with every fragment.
    pub(super) facts: Map<String, Value>,
}

/// An agent that runs the loop. Cloning shares the parts.
#[derive(Debug, Clone)]
pub struct LoopAgent(Arc<Assembly>);

impl LoopAgent {
    /// An agent of these parts. `caller` is who the journal says asks the model, such as `lead_agent`.
    pub fn new(
        name: impl Into<String>,
        caller: impl Into<String>,
        model: Arc<dyn ChatModel>,
        settings: ModelSettings,
        system: Option<Arc<str>>,
        tools: ToolRegistry,
        stack: MiddlewareStack,
    ) -> Self {
        let name = name.into();
        let info = model.info();
        let facts = [
            ("ls_provider", json!(info.provider)),
            ("ls_model_name", json!(info.model)),
            ("ls_model_type", json!("chat")),
            ("model_name", json!(info.name)),
            ("agent_name", json!(name)),
        ];
        Self(Arc::new(Assembly {
            facts: facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            caller: caller.into(),
            schemas: tools.schemas(),
            nodes: Arc::new(LoopNodes::of(&stack)),
            name,
            model,
            settings,
            system,
            tools,
            stack,
        }))
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl Agent for LoopAgent {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: mpsc::UnboundedReceiver<AgentEvent>) -> AgentStream {
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

    fn nodes(&self) -> Vec<String> {
        self.0.nodes.names()
    }
}
