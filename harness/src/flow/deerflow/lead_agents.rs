//! Agents of nodes from the lead agents of an installation: the lead agent, custom agents, and
//! their subagents.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::agents::{AgentTarget, NodeAgent, NodeAgents};
use crate::agents::lead::LeadAgents;
use crate::messages::UsageMetadata;
use crate::runtime::agent::UnknownAssistant;

#[async_trait]
impl NodeAgents for LeadAgents {
    async fn agent(
        &self,
        target: &AgentTarget,
        options: &Map<String, Value>,
    ) -> Result<NodeAgent, UnknownAssistant> {
        let AgentTarget::Subagent(kind) = target else {
            let built = self.built(options).await?;
            return Ok(NodeAgent {
                agent: built.agent.clone(),
                max_steps: None,
                unknown_tools: built.unknown_tools.clone(),
            });
        };
        let mut options = options.clone();
        options.insert("subagent_enabled".to_owned(), Value::Bool(true));
        let built = self.built(&options).await?;
        let found = built.subagents.as_ref().and_then(|pool| pool.get(kind));
        let found = found.ok_or_else(|| UnknownAssistant::NotFound(kind.clone()))?;
        Ok(NodeAgent {
            agent: found.agent.clone(),
            max_steps: Some(found.kind.max_turns),
            unknown_tools: built.unknown_tools.clone(),
        })
    }

    fn cost_usd(&self, model: &str, usage: &UsageMetadata) -> Option<f64> {
        self.models().cost_usd(model, usage)
    }
}
