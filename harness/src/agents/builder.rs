//! The way to an agent for those who embed the harness.

use std::sync::Arc;

use super::agent_loop::{AgentParts, LoopAgent, ModelSettings, Patience};
use crate::middlewares::{Middleware, MiddlewareStack};
use crate::models::ChatModel;
use crate::runtime::agent::Agent;
use crate::tools::{Tool, ToolRegistry, erase};

/// Puts an agent together: a model, and whatever else it should have.
///
/// Built once, an agent serves any number of runs.
#[derive(Debug)]
pub struct AgentBuilder {
    parts: AgentParts,
    middlewares: Vec<Arc<dyn Middleware>>,
}

impl AgentBuilder {
    /// An agent with this model and nothing else.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        let parts = AgentParts {
            name: "agent".to_owned(),
            caller: "lead_agent".to_owned(),
            model,
            settings: ModelSettings::default(),
            patience: Patience::default(),
            system: None,
            tools: ToolRegistry::new(),
            stack: MiddlewareStack::default(),
        };
        Self {
            parts,
            middlewares: Vec::new(),
        }
    }

    /// Names it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.name = name.into();
        self
    }

    /// Who the journal says asks the model: `lead_agent` unless said otherwise.
    #[must_use]
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.parts.caller = caller.into();
        self
    }

    /// Tells the model who it is.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.parts.system = Some(text.into());
        self
    }

    /// Says how the model is asked.
    #[must_use]
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.parts.settings = settings;
        self
    }

    /// Says how patient it is with the model's provider.
    #[must_use]
    pub fn patience(mut self, patience: Patience) -> Self {
        self.parts.patience = patience;
        self
    }

    /// Gives it one tool more.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.parts.tools.add(erase(tool));
        self
    }

    /// Gives it these tools and no others.
    #[must_use]
    pub fn tools(mut self, tools: ToolRegistry) -> Self {
        self.parts.tools = tools;
        self
    }

    /// Adds a middleware inside those added before.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middlewares.push(Arc::new(middleware));
        self
    }

    /// Adds middlewares inside those added before.
    #[must_use]
    pub fn middlewares(
        mut self,
        middlewares: impl IntoIterator<Item = Arc<dyn Middleware>>,
    ) -> Self {
        self.middlewares.extend(middlewares);
        self
    }

    /// The agent.
    pub fn build(mut self) -> Arc<dyn Agent> {
        self.parts.stack = MiddlewareStack::new(self.middlewares);
        Arc::new(LoopAgent::new(self.parts))
    }
}
