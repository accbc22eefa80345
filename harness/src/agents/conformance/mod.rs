//! Agent for API conformance suites, with simple tools whose effects are visible on the wire.
//!
//! The model selects the tool from the user's text, so a scripted provider can make a message cause
//! any behaviour.

mod asking;
mod fn_tool;
mod nested;
mod plain;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::agent_loop::RetrySettings;
use super::{AgentBuilder, AgentSource};
use crate::models::{ModelCatalog, RetryPolicy};
use crate::runtime::agent::{Agent, UnknownAssistant};

/// Name of the conformance agent as an assistant.
pub const CONFORMANCE: &str = "conformance";

/// Conformance agent with the first model of a catalog.
#[derive(Debug)]
pub struct ConformanceAgent {
    models: Arc<ModelCatalog>,
}

impl ConformanceAgent {
    /// Creates an agent that calls the first of these models.
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
        // Failures of the provider must be visible at once, without retries.
        let no_retries = || RetrySettings {
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
                .retry_settings(no_retries());
            agent
                .tool(plain::bash())
                .tool(asking::ask_clarification())
                .tool(asking::ask_twice())
        };
        let inner = inside().tool(nested::Task(inside().build())).build();
        Ok(AgentBuilder::new(model.clone())
            .name(CONFORMANCE)
            .retry_settings(no_retries())
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
