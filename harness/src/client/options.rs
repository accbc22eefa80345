//! How an agent is asked.

use serde_json::{Map, Value};

/// The options of a question. Those of the client are for every question that names none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatOptions {
    /// The model entry; the agent's own, or the first of the configuration, when left out.
    pub model_name: Option<String>,
    /// Whether the model thinks before it answers, where it can.
    pub thinking_enabled: bool,
    /// How hard it thinks, where it can be told.
    pub reasoning_effort: Option<String>,
    /// Whether the agent plans with a list of things to do.
    pub plan_mode: bool,
    /// Whether it may hand tasks to other agents.
    pub subagent_enabled: bool,
    /// The custom agent that is asked.
    pub agent_name: Option<String>,
    /// Most steps of a run; the installation's bound holds all the same.
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
    /// As a run has them, by the names that the gateway's clients use.
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
