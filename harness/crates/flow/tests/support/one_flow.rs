//! Resolver of one flow, for any name.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_flow::agent::FlowAgent;
use deerflow_runtime::agent::{Agent, AgentResolver, AssistantInfo, UnknownAssistant};
use serde_json::{Map, Value};

#[derive(Debug)]
pub(crate) struct OneFlow(pub(crate) Arc<FlowAgent>);

#[async_trait]
impl AgentResolver for OneFlow {
    async fn resolve(
        &self,
        _: &str,
        _: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.0.clone())
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        Vec::new()
    }
}
