//! Options of a run that the lead agent reads.

use serde_json::{Map, Value};

use crate::agents::custom::{AgentName, CustomAgent, InvalidAgentName};
use crate::agents::tool_restriction::ToolRestriction;
use crate::middlewares::TaskLimits;

/// Options that select a separately built agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LeadOptions {
    /// Requested model entry.
    pub(super) model: Option<String>,
    /// Enables or disables thinking, for models that support it.
    pub(super) thinking: Option<bool>,
    /// Requested reasoning effort.
    pub(super) reasoning_effort: Option<String>,
    /// `true` if the agent plans with a todo list.
    pub(super) plan_mode: bool,
    /// Limits of subagent tasks; `None` disables subagents.
    pub(super) tasks: Option<TaskLimits>,
    /// `true` if a user is present to answer questions.
    pub(super) interactive: bool,
    /// `true` if the run creates a custom agent.
    pub(super) bootstrap: bool,
    /// `true` if a webhook of a code forge started the run; such a run must not change the agent.
    pub(super) from_forge: bool,
    /// Tools that the agent may use.
    pub(super) tools: ToolRestriction,
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
            tools: ToolRestriction::read(options),
        }
    }

    /// Fills unset options from the custom agent.
    pub(super) fn with_defaults_of(mut self, agent: &CustomAgent) -> Self {
        self.thinking = self.thinking.or(agent.thinking_enabled);
        self.reasoning_effort = self
            .reasoning_effort
            .or_else(|| agent.reasoning_effort.clone());
        self
    }
}

/// Returns the name of the custom agent in the options.
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
