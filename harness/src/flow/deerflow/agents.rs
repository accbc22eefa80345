//! Port that resolves the agents of nodes.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::agents::lead::LEAD_AGENT;
use crate::agents::subagents::SubagentPool;
use crate::messages::UsageMetadata;
use crate::runtime::agent::{Agent, AgentResolver, UnknownAssistant};

/// Agent that a node names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentTarget {
    /// The lead agent, or the custom agent that option `agent_name` names.
    Lead,
    /// Subagent of this kind.
    Subagent(String),
}

/// Resolved agent of a node.
#[derive(Debug, Clone)]
pub struct NodeAgent {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// Maximum number of super-steps, if the agent has its own.
    pub max_steps: Option<u64>,
    /// Names in the options' restriction of tools that are neither tools nor groups.
    pub unknown_tools: Vec<String>,
}

/// Resolves the agents of nodes for the bound actor.
#[async_trait]
pub trait NodeAgents: Send + Sync + fmt::Debug {
    /// Returns the agent for a run with these options.
    ///
    /// # Errors
    /// The agent does not exist or cannot start.
    async fn agent(
        &self,
        target: &AgentTarget,
        options: &Map<String, Value>,
    ) -> Result<NodeAgent, UnknownAssistant>;

    /// Returns the cost of a call of a model entry in US dollars. `None` if the entry has no price.
    fn cost_usd(&self, _model: &str, _usage: &UsageMetadata) -> Option<f64> {
        None
    }
}

/// Agents of a resolver, whose lead agent reads `agent_name`, and the subagents of a pool.
#[derive(Debug, Clone)]
pub struct ResolvedAgents {
    resolver: Arc<dyn AgentResolver>,
    subagents: Option<SubagentPool>,
}

impl ResolvedAgents {
    /// Creates the agents of a resolver, without subagents.
    pub fn new(resolver: Arc<dyn AgentResolver>) -> Self {
        Self {
            resolver,
            subagents: None,
        }
    }

    /// Adds the subagents of a pool. The limit of concurrent nodes applies to them, not the permits
    /// of the pool.
    #[must_use]
    pub fn with_subagents(self, pool: SubagentPool) -> Self {
        Self {
            subagents: Some(pool),
            ..self
        }
    }
}

#[async_trait]
impl NodeAgents for ResolvedAgents {
    async fn agent(
        &self,
        target: &AgentTarget,
        options: &Map<String, Value>,
    ) -> Result<NodeAgent, UnknownAssistant> {
        match target {
            AgentTarget::Lead => Ok(NodeAgent {
                agent: self.resolver.resolve(LEAD_AGENT, options).await?,
                max_steps: None,
                unknown_tools: Vec::new(),
            }),
            AgentTarget::Subagent(kind) => {
                let found = self.subagents.as_ref().and_then(|pool| pool.get(kind));
                let found = found.ok_or_else(|| UnknownAssistant::NotFound(kind.clone()))?;
                Ok(NodeAgent {
                    agent: found.agent.clone(),
                    max_steps: Some(found.kind.max_turns),
                    unknown_tools: Vec::new(),
                })
            }
        }
    }
}
