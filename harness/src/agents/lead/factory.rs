//! Factory of lead agents: resolves the custom agent of a run and caches one agent per combination
//! of options.

use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::built::Built;
use super::options::{LeadOptions, agent_name};
use super::persona::Persona;
use super::skills::skills_of;
use super::spec::LeadAgentSpec;
use crate::agents::catalog::AgentSource;
use crate::agents::custom::{CustomAgent, CustomAgentError};
use crate::models::ModelCatalog;
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::agent::{Agent, UnknownAssistant};

/// Name of the lead agent as an assistant.
pub const LEAD_AGENT: &str = "lead_agent";
/// Maximum number of cached agents. Options are free text, so the number of combinations is
/// unbounded.
const MAX_CACHED_AGENTS: usize = 64;

/// Cached agents, least recently used first.
type AgentCache = IndexMap<BuildKey, Arc<Built>>;

/// Cache key: run options, a digest of the custom agent and its skills, and the version of the
/// dynamic tools.
type BuildKey = (LeadOptions, String, u64);

/// Lead agents of one configuration.
#[derive(Debug)]
pub struct LeadAgents {
    pub(super) spec: LeadAgentSpec,
    /// Permits for concurrently active subagents of all lead agents.
    pub(super) subagent_permits: Arc<Semaphore>,
    built: Mutex<AgentCache>,
}

impl LeadAgents {
    /// Creates a factory of agents with this specification.
    pub fn new(spec: LeadAgentSpec) -> Self {
        let subagent_permits = Arc::new(Semaphore::new(spec.guards.subagents.max_running.max(1)));
        Self {
            spec,
            subagent_permits,
            built: Mutex::default(),
        }
    }

    /// Models of the agents.
    pub(crate) fn models(&self) -> &ModelCatalog {
        &self.spec.models
    }

    /// Returns the agent for a run of the current actor with these options, with its subagents.
    pub(crate) async fn built(
        &self,
        options: &Map<String, Value>,
    ) -> Result<Arc<Built>, UnknownAssistant> {
        let lead_options = LeadOptions::read(options);
        let mut persona = self.persona(options, lead_options.bootstrap).await?;
        narrow_tool_groups(&mut persona.agent, options);
        let skills = skills_of(&self.spec, &lead_options, &persona).await;
        let live = match &self.spec.live_tools {
            Some(source) => source.tools().await,
            None => Arc::default(),
        };
        let fingerprint = persona.fingerprint(&skills.section(false).unwrap_or_default());
        let key = (
            lead_options.with_defaults_of(&persona.agent),
            fingerprint,
            live.version(),
        );
        if let Some(agent) = cached(&mut self.built.lock(), &key) {
            return Ok(agent);
        }
        let agent = Arc::new(self.build(&key.0, &persona, &skills, &live)?);
        let mut built = self.built.lock();
        // New runs never request tools of an older version.
        built.retain(|(_, _, version), _| *version == live.version());
        if let Some(existing) = cached(&mut built, &key) {
            return Ok(existing);
        }
        if built.len() >= MAX_CACHED_AGENTS {
            built.shift_remove_index(0);
        }
        built.insert(key, agent.clone());
        Ok(agent)
    }

    /// Resolves the persona of a run: the custom agent that its options name, or the unnamed agent
    /// with the user's soul.
    async fn persona(
        &self,
        options: &Map<String, Value>,
        bootstrap: bool,
    ) -> Result<Persona, UnknownAssistant> {
        let name = agent_name(options).map_err(|error| UnknownAssistant::InvalidName(error.0))?;
        let Some(agents) = self.spec.custom.as_ref().filter(|_| !bootstrap) else {
            return Ok(Persona::default());
        };
        let user = effective_user_id();
        let unusable = |name: String| {
            move |error: CustomAgentError| UnknownAssistant::Unusable {
                name,
                reason: error.to_string(),
            }
        };
        let profile = agents
            .profile(&user)
            .await
            .map_err(unusable(LEAD_AGENT.to_owned()))?;
        let Some(name) = name else {
            let soul = agents
                .default_soul(&user)
                .await
                .map_err(unusable(LEAD_AGENT.to_owned()))?;
            return Ok(Persona {
                name: None,
                agent: CustomAgent {
                    soul,
                    ..CustomAgent::default()
                },
                profile,
            });
        };
        match agents
            .get(&user, &name)
            .await
            .map_err(unusable(name.to_string()))?
        {
            Some(agent) => Ok(Persona {
                name: Some(name),
                agent,
                profile,
            }),
            None => Err(UnknownAssistant::NotFound(name.to_string())),
        }
    }
}

#[async_trait]
impl AgentSource for LeadAgents {
    fn description(&self) -> Option<&str> {
        Some("The agent that talks with the user, with tools, files and questions of its own.")
    }

    async fn agent(
        &self,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(self.built(options).await?.agent.clone())
    }

    fn forget(&self) {
        self.built.lock().clear();
    }
}

/// Restricts an agent to the tool groups that a run allows. A run adds none.
fn narrow_tool_groups(agent: &mut CustomAgent, options: &Map<String, Value>) {
    let Some(allowed) = options.get("tool_groups").and_then(Value::as_array) else {
        return;
    };
    let allowed = allowed.iter().filter_map(Value::as_str);
    let own = agent.tool_groups.take();
    let is_own = |name: &&str| {
        own.as_ref()
            .is_none_or(|own| own.iter().any(|group| group == name))
    };
    agent.tool_groups = Some(allowed.filter(is_own).map(str::to_owned).collect());
}

/// Returns the agent with this key and marks it as most recently used.
fn cached(built: &mut AgentCache, key: &BuildKey) -> Option<Arc<Built>> {
    let at = built.get_index_of(key)?;
    built.move_index(at, built.len() - 1);
    built.get(key).cloned()
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
