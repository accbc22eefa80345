//! Options of a request to an agent.

use serde_json::{Map, Value};

/// Options of a request. Those of the client are the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatOptions {
    /// Model entry; default: the agent's own model, or the first of the configuration.
    pub model_name: Option<String>,
    /// Enables thinking, if the model supports it.
    pub thinking_enabled: bool,
    /// Reasoning effort, if the model supports it.
    pub reasoning_effort: Option<String>,
    /// Enables planning with a to-do list.
    pub plan_mode: bool,
    /// Allows delegation to subagents.
    pub subagent_enabled: bool,
    /// Custom agent to use.
    pub agent_name: Option<String>,
    /// Maximum number of steps of a run; the limit of the installation also applies.
    pub recursion_limit: u64,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self {
            model_name: None,
            thinking_enabled: true,
            reasoning_effort: None,
            plan_mode: false,
            subagent_enabled: false,
            agent_name: None,
            recursion_limit: 100,
        }
    }
}

impl ChatOptions {
    /// Converts to run options, with the names that the gateway's clients use.
    pub(super) fn to_map(&self) -> Map<String, Value> {
        let flags = [
            ("thinking_enabled", self.thinking_enabled),
            ("is_plan_mode", self.plan_mode),
            ("subagent_enabled", self.subagent_enabled),
        ];
        let texts = [
            ("model_name", &self.model_name),
            ("reasoning_effort", &self.reasoning_effort),
            ("agent_name", &self.agent_name),
        ];
        let flags = flags
            .into_iter()
            .map(|(name, on)| (name.to_owned(), on.into()));
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), text.as_deref()?.into())));
        flags.chain(texts).collect()
    }
}
