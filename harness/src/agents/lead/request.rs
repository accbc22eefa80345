//! What decides which lead agent a run gets.

use serde_json::{Map, Value};

use super::options::{LeadOptions, agent_name};
use crate::agents::custom::{AgentName, CustomAgent};
use crate::runtime::actor_context::effective_user_id;
use crate::runtime::agent::UnknownAssistant;

/// User and options of a run, as far as its agent depends on them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AgentRequest {
    /// User whose custom agents, profile and skills apply.
    pub(super) user: String,
    /// Name of the custom agent; `None` for the lead agent itself.
    pub(super) name: Option<AgentName>,
    pub(super) options: LeadOptions,
    /// Tool groups that the run allows; `None` allows all.
    tool_groups: Option<Vec<String>>,
}

impl AgentRequest {
    /// Reads the request of the current actor.
    ///
    /// # Errors
    /// [`UnknownAssistant::InvalidName`].
    pub(super) fn read(options: &Map<String, Value>) -> Result<Self, UnknownAssistant> {
        let name = agent_name(options).map_err(|error| UnknownAssistant::InvalidName(error.0))?;
        let groups = options.get("tool_groups").and_then(Value::as_array);
        let tool_groups = groups.map(|groups| {
            let names = groups.iter().filter_map(Value::as_str);
            names.map(str::to_owned).collect()
        });
        Ok(Self {
            user: effective_user_id(),
            name,
            options: LeadOptions::read(options),
            tool_groups,
        })
    }

    /// Restricts an agent to the tool groups that the run allows. A run adds none.
    pub(super) fn narrow_tool_groups(&self, agent: &mut CustomAgent) {
        let Some(allowed) = &self.tool_groups else {
            return;
        };
        let own = agent.tool_groups.take();
        let is_own = |name: &&String| own.as_ref().is_none_or(|own| own.contains(name));
        agent.tool_groups = Some(allowed.iter().filter(is_own).cloned().collect());
    }
}
