//! Builder of agents, for programs that embed the harness.

use std::sync::Arc;

use super::agent_loop::{AgentDependencies, LoopAgent, ModelSettings, RetrySettings};
use crate::middlewares::{Middleware, MiddlewareStack};
use crate::models::ChatModel;
use crate::runtime::agent::Agent;
use crate::tools::{Tool, ToolRegistry, erase};

/// Builds an agent from a model and optional tools, middlewares and settings.
///
/// One built agent serves any number of runs.
///
/// ```
/// use std::sync::Arc;
///
/// use deerflow_harness::agents::{AgentBuilder, StaticResolver};
/// use deerflow_harness::models::ScriptedModel;
/// use deerflow_harness::runtime::in_memory::runtime_in_memory;
/// use deerflow_harness::runtime::runs::{RunLimits, RunsFacade};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = AgentBuilder::new(Arc::new(ScriptedModel::default()))
///     .name("helper")
///     .system_prompt("Answer briefly.")
///     .build();
/// let agents = Arc::new(StaticResolver::new().with_agent("helper", agent));
/// let runs = RunsFacade::new(runtime_in_memory(agents)?, RunLimits::default());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct AgentBuilder {
    dependencies: AgentDependencies,
    middlewares: Vec<Arc<dyn Middleware>>,
}

impl AgentBuilder {
    /// Begins with this model and no tools, middlewares or system prompt.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        let dependencies = AgentDependencies {
            name: "agent".to_owned(),
            caller: "lead_agent".to_owned(),
            model,
            settings: ModelSettings::default(),
            patience: RetrySettings::default(),
            system: None,
            tools: ToolRegistry::new(),
            stack: MiddlewareStack::default(),
        };
        Self {
            dependencies,
            middlewares: Vec::new(),
        }
    }

    /// Sets the agent's name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.dependencies.name = name.into();
        self
    }

    /// Sets the caller name that model calls have in the journal; the default is `lead_agent`.
    #[must_use]
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.dependencies.caller = caller.into();
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.dependencies.system = Some(text.into());
        self
    }

    /// Sets thinking, reasoning effort and parameter overrides of model calls.
    #[must_use]
    pub fn model_settings(mut self, settings: ModelSettings) -> Self {
        self.dependencies.settings = settings;
        self
    }

    /// Sets the retry policy and circuit breaker of model calls.
    #[must_use]
    pub fn retry_settings(mut self, settings: RetrySettings) -> Self {
        self.dependencies.patience = settings;
        self
    }

    #[doc(hidden)]
    #[deprecated(note = "use `retry_settings`")]
    #[must_use]
    pub fn patience(self, settings: RetrySettings) -> Self {
        self.retry_settings(settings)
    }

    /// Adds one tool.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.dependencies.tools.add(erase(tool));
        self
    }

    /// Replaces all tools.
    #[must_use]
    pub fn tools(mut self, tools: ToolRegistry) -> Self {
        self.dependencies.tools = tools;
        self
    }

    /// Adds a middleware, as the innermost one so far.
    #[must_use]
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.middlewares.push(Arc::new(middleware));
        self
    }

    /// Adds middlewares in order, each inside the ones before it.
    #[must_use]
    pub fn middlewares(
        mut self,
        middlewares: impl IntoIterator<Item = Arc<dyn Middleware>>,
    ) -> Self {
        self.middlewares.extend(middlewares);
        self
    }

    /// Builds the agent.
    pub fn build(mut self) -> Arc<dyn Agent> {
        self.dependencies.stack = MiddlewareStack::new(self.middlewares);
        Arc::new(LoopAgent::new(self.dependencies))
    }
}
