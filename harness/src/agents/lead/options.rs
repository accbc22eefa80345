//! What a run's options mean to the lead agent.

use serde_json::{Map, Value};

use crate::agents::custom::{AgentName, CustomAgent, InvalidAgentName};
use crate::middlewares::TaskLimits;

/// The options that call for an agent of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LeadOptions {
    /// The model entry asked for.
    pub(super) model: Option<String>,
    /// Whether the model shall think, where it can.
    pub(super) thinking: Option<bool>,
    /// How hard.
    pub(super) reasoning_effort: Option<String>,
    /// Whether the agent plans with a todo list.
    pub(super) plan_mode: bool,
    /// How many tasks the agent may hand to others, if any.
    pub(super) tasks: Option<TaskLimits>,
    /// Whether somebody is there to answer questions.
    pub(super) interactive: bool,
    /// Whether the run is to make an agent, rather than to be one.
    pub(super) bootstrap: bool,
    /// Whether the run comes from a webhook of a forge, where an agent must not change itself.
    pub(super) from_forge: bool,
}

impl LeadOptions {
    pub(super) fn read(options: &Map<String, Value>) -> Self {
        let flag = |key: &str| options.get(key).and_then(Value::as_bool);
        Self {
            model: text(options, "model_name").or_else(|| text(options, "model")),
            thinking: flag("thinking_enabled"),
            reasoning_effort: text(options, "reasoning_effort"),
            plan_mode: flag("is_plan_mode").unwrap_or(false),
            tasks: flag("subagent_enabled")
                .unwrap_or(false)
                .then(|| TaskLimits::read(options)),
            interactive: !flag("non_interactive").unwrap_or(false),
            bootstrap: flag("is_bootstrap").unwrap_or(false),
            from_forge: text(options, "channel_name").as_deref() == Some("github"),
        }
    }

    /// The same, with what an agent says where the run says nothing.
    pub(super) fn with_defaults_of(mut self, agent: &CustomAgent) -> Self {
        self.thinking = self.thinking.or(agent.thinking_enabled);
        self.reasoning_effort = self
            .reasoning_effort
            .or_else(|| agent.reasoning_effort.clone());
        self
    }
}

/// The custom agent that the options name.
pub(super) fn agent_name(
    options: &Map<String, Value>,
) -> Result<Option<AgentName>, InvalidAgentName> {
    text(options, crate::agents::custom::AGENT_NAME)
        .map(|name| AgentName::parse(&name))
        .transpose()
}

fn text(options: &Map<String, Value>, key: &str) -> Option<String> {
    options
        .get(key)
        .and_then(Value::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}
