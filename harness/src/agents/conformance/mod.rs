//! The agent that API conformance suites drive: plain tools whose effects show on the wire, and nothing else.
//!
//! Its model decides by the user's words which tool is called, so a scripted provider turns any message into any behaviour.

mod asking;
mod nested;
mod plain;
mod quick;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::agent_loop::Patience;
use super::{AgentBuilder, AgentSource};
use crate::models::{ModelCatalog, RetryPolicy};
use crate::runtime::agent::{Agent, UnknownAssistant};

/// The conformance agent's name as an assistant.
pub const CONFORMANCE: &str = "conformance";

/// The conformance agent over the first of some models.
#[derive(Debug)]
pub struct ConformanceAgent {
    models: Arc<ModelCatalog>,
}

impl ConformanceAgent {
    /// An agent that asks the first of these models.
    pub fn new(models: Arc<ModelCatalog>) -> Self {
        Self { models }
    }
}

#[async_trait]
impl AgentSource for ConformanceAgent {
    fn description(&self) -> Option<&str> {
        Some("An agent for API conformance tests; never offer it to users.")
    }

    async fn agent(
        &self,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let unusable = |reason| UnknownAssistant::Unusable {
            name: CONFORMANCE.to_owned(),
            reason,
        };
        let model = self
            .models
            .get_or_default(None)
            .map_err(|error| unusable(error.to_string()))?;
        // A provider's failure shows at once: nothing is tried again.
        let patience = || Patience {
            policy: RetryPolicy {
                max_attempts: 1,
                ..RetryPolicy::default()
            },
            breaker: None,
        };
        let inside = || {
            let agent = AgentBuilder::new(model.clone())
                .name("task")
                .caller("subagent:task")
                .patience(patience());
            agent
                .tool(plain::bash())
                .tool(asking::ask_clarification())
                .tool(asking::ask_twice())
        };
        let inner = inside().tool(nested::Task(inside().build())).build();
        Ok(AgentBuilder::new(model.clone())
            .name(CONFORMANCE)
            .patience(patience())
            .tool(plain::bash())
            .tool(plain::explode())
            .tool(plain::emit())
            .tool(plain::show_config())
            .tool(plain::Sleep)
            .tool(asking::ask_clarification())
            .tool(asking::ask_twice())
            .tool(nested::Task(inner))
            .build())
    }
}

#[cfg(test)]
mod nested_tests;
#[cfg(test)]
#[path = "conformance_tests.rs"]
mod tests;
#[cfg(test)]
mod wire_tests;
