//! Lead agents as runs get them: resolved once, and used until something they depend on changes.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::built::Built;
use super::factory::AgentFactory;
use super::request::AgentRequest;
use super::resolved::ResolvedAgents;
use super::spec::LeadAgentSpec;
use crate::agents::catalog::AgentSource;
use crate::models::ModelCatalog;
use crate::rechecked::Reading;
use crate::runtime::agent::{Agent, UnknownAssistant};
use crate::runtime::tasks::Tasks;

/// Lead agents of one configuration.
///
/// A resolved agent serves the runs of its user with the same options for up to a second without
/// reading files. A change on disk is seen by runs that start later than that; a change through
/// [`Skills`](crate::skills::Skills), through a store of custom agents that counts its changes, or
/// of the dynamic tools is seen by the next run.
#[derive(Debug)]
pub struct LeadAgents {
    factory: Arc<AgentFactory>,
    resolved: ResolvedAgents,
    tasks: Option<Tasks>,
}

impl LeadAgents {
    /// Creates a factory of agents with this specification.
    pub fn new(spec: LeadAgentSpec) -> Self {
        Self {
            factory: Arc::new(AgentFactory::new(spec)),
            resolved: ResolvedAgents::default(),
            tasks: None,
        }
    }

    /// Checks the files of agents in use by tasks of this set, so that runs seldom wait for it.
    #[must_use]
    pub fn with_background_checks(self, tasks: Tasks) -> Self {
        Self {
            tasks: Some(tasks),
            ..self
        }
    }

    /// Models of the agents.
    pub(crate) fn models(&self) -> &ModelCatalog {
        &self.factory.spec.models
    }

    /// Returns the agent for a run of the current actor with these options, with its subagents.
    pub(crate) async fn built(
        &self,
        options: &Map<String, Value>,
    ) -> Result<Arc<Built>, UnknownAssistant> {
        let request = AgentRequest::read(options)?;
        let live = self.factory.live_tools().await;
        let stamp = || self.factory.stamp(&request.user, &live);
        if stamp().is_none() {
            let (Reading::Complete(resolved) | Reading::Substitute(resolved)) =
                self.factory.resolve(&request, &live, None).await?;
            return Ok(resolved.built);
        }
        let slot = self.resolved.slot(&request, live.version());
        let resolve = |previous| {
            let (factory, request, live) = (self.factory.clone(), request.clone(), live.clone());
            async move { factory.resolve(&request, &live, previous).await }
        };
        let outcome = slot.get(stamp, self.tasks.as_ref(), resolve).await;
        if outcome.is_err() {
            self.resolved.remove_empty(&request);
        }
        Ok(outcome?.built)
    }

    /// Returns the number of requests with a resolved agent, and of the agents that they share.
    #[cfg(test)]
    fn counts(&self) -> (usize, usize) {
        (self.resolved.len(), self.factory.shared_count())
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
        self.resolved.clear();
        self.factory.forget();
    }
}

#[cfg(test)]
#[path = "lead_agents_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "recheck_tests.rs"]
mod recheck_tests;
