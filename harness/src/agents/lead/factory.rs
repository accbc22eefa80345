//! Factory of lead agents: reads what a request depends on, and builds one agent per content.

use std::sync::Arc;

use hashlink::LruCache;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::built::Built;
use super::options::LeadOptions;
use super::persona::{Fingerprint, Persona};
use super::request::AgentRequest;
use super::skills::skills_of;
use super::spec::LeadAgentSpec;
use crate::agents::custom::{CustomAgent, CustomAgentError};
use crate::rechecked::Reading;
use crate::runtime::agent::UnknownAssistant;
use crate::tools::ToolSet;

/// Name of the lead agent as an assistant.
pub const LEAD_AGENT: &str = "lead_agent";
/// Maximum number of agents that requests of equal content share. Options are free text, so the
/// number of combinations is unbounded.
pub(super) const MAX_SHARED_AGENTS: usize = 64;

/// Builds the lead agents of one configuration.
#[derive(Debug)]
pub(super) struct AgentFactory {
    pub(super) spec: LeadAgentSpec,
    /// Permits for concurrently active subagents of all lead agents.
    pub(super) subagent_permits: Arc<Semaphore>,
    /// Agents by content, least recently used first. Users with the same content share one.
    shared: Mutex<LruCache<Arc<Content>, Arc<Built>>>,
}

/// Everything that an agent is built from: options, a digest of the persona and the skills, and the
/// version of the dynamic tools. No part of it names the user.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Content {
    options: LeadOptions,
    fingerprint: Fingerprint,
    live_version: u64,
}

/// Agent of a request.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    content: Arc<Content>,
    pub(super) built: Arc<Built>,
}

/// Versions of the sources of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    custom: u64,
    skills: u64,
    live: u64,
}

impl AgentFactory {
    /// Creates a factory of agents with this specification.
    pub(super) fn new(spec: LeadAgentSpec) -> Self {
        let subagent_permits = Arc::new(Semaphore::new(spec.guards.subagents.max_running.max(1)));
        Self {
            spec,
            subagent_permits,
            shared: Mutex::new(LruCache::new(MAX_SHARED_AGENTS)),
        }
    }

    /// Returns the dynamic tools that are available now.
    pub(super) async fn live_tools(&self) -> Arc<ToolSet> {
        match &self.spec.live_tools {
            Some(source) => source.tools().await,
            None => Arc::default(),
        }
    }

    /// Returns the versions of what the user's agents depend on; `None` if the store of custom
    /// agents does not count its changes.
    pub(super) fn stamp(&self, user: &str, live: &ToolSet) -> Option<Stamp> {
        let spec = &self.spec;
        let custom = match &spec.custom {
            Some(agents) => agents.version(user)?,
            None => 0,
        };
        Some(Stamp {
            custom,
            skills: spec.skills.as_ref().map_or(0, |skills| skills.version()),
            live: live.version(),
        })
    }

    /// Reads the persona and the skills of a request, and returns `previous` if they are unchanged,
    /// else an agent that is shared or newly built.
    ///
    /// # Errors
    /// Those of an agent that does not exist, cannot be read, or names no usable model.
    pub(super) async fn resolve(
        &self,
        request: &AgentRequest,
        live: &ToolSet,
        previous: Option<Resolved>,
    ) -> Result<Reading<Resolved>, UnknownAssistant> {
        let mut persona = self.persona(request).await?;
        request.narrow_tool_groups(&mut persona.agent);
        let (skills, is_complete) = skills_of(&self.spec, &request.options, &persona).await;
        let fingerprint = persona.fingerprint(&skills.section(false).unwrap_or_default());
        let content = Content {
            options: request.options.clone().with_defaults_of(&persona.agent),
            fingerprint,
            live_version: live.version(),
        };
        let resolved = match previous {
            Some(previous) if *previous.content == content => previous,
            _ => self.with_content(content, |options| {
                self.build(options, &persona, &skills, live)
            })?,
        };
        Ok(if is_complete {
            Reading::Complete(resolved)
        } else {
            Reading::Substitute(resolved)
        })
    }

    /// Returns the agent with this content, from the cache or built by `build`.
    fn with_content(
        &self,
        content: Content,
        build: impl FnOnce(&LeadOptions) -> Result<Built, UnknownAssistant>,
    ) -> Result<Resolved, UnknownAssistant> {
        let content = Arc::new(content);
        let resolved = |built: &Arc<Built>| Resolved {
            content: content.clone(),
            built: built.clone(),
        };
        if let Some(built) = self.shared.lock().get(&content) {
            return Ok(resolved(built));
        }
        let built = Arc::new(build(&content.options)?);
        let mut shared = self.shared.lock();
        // New runs never request tools of an older version.
        shared.retain(|other, _| other.live_version == content.live_version);
        if let Some(existing) = shared.get(&content) {
            return Ok(resolved(existing));
        }
        let new = resolved(&built);
        shared.insert(content, built);
        Ok(new)
    }

    /// Returns the persona of a request: the custom agent that it names, or the unnamed agent with
    /// the user's soul.
    async fn persona(&self, request: &AgentRequest) -> Result<Persona, UnknownAssistant> {
        let bootstrap = request.options.bootstrap;
        let Some(agents) = self.spec.custom.as_ref().filter(|_| !bootstrap) else {
            return Ok(Persona::default());
        };
        let user = &request.user;
        let unusable = |name: &str| {
            let name = name.to_owned();
            move |error: CustomAgentError| UnknownAssistant::Unusable {
                name,
                reason: error.to_string(),
            }
        };
        let profile = agents.profile(user).await.map_err(unusable(LEAD_AGENT))?;
        let Some(name) = &request.name else {
            let soul = agents.default_soul(user).await;
            return Ok(Persona {
                name: None,
                agent: CustomAgent {
                    soul: soul.map_err(unusable(LEAD_AGENT))?,
                    ..CustomAgent::default()
                },
                profile,
            });
        };
        let found = agents.get(user, name).await;
        match found.map_err(unusable(name.as_str()))? {
            Some(agent) => Ok(Persona {
                name: Some(name.clone()),
                agent,
                profile,
            }),
            None => Err(UnknownAssistant::NotFound(name.to_string())),
        }
    }

    /// Drops the shared agents.
    pub(super) fn forget(&self) {
        self.shared.lock().clear();
    }

    /// Returns the number of shared agents.
    #[cfg(test)]
    pub(super) fn shared_count(&self) -> usize {
        self.shared.lock().len()
    }
}
