//! `subagents`: limits of subagents, their tools, and custom kinds in addition to the built-in
//! ones.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TokenBudgetConfig;
use super::check::Checker;
use super::open_keys::OpenKeys;

/// Tools that subagents do not get, unless their entry allows them.
const DENIED_TO_SUBAGENTS: [&str; 3] = ["task", "ask_clarification", "present_files"];

/// Limits and kinds of subagents.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentsConfig {
    /// Allows runs to use subagents.
    pub enabled: bool,
    /// Timeout of a subagent, in seconds.
    pub timeout_seconds: u64,
    /// Maximum number of steps of a built-in subagent; null for its own default.
    pub max_turns: Option<u64>,
    /// Maximum number of subagents that one run may start.
    pub max_total_per_run: usize,
    /// Maximum number of concurrently running subagents of one server; others wait.
    pub max_running: usize,
    /// Token budget of one subagent.
    pub token_budget: SubagentBudgetConfig,
    /// Overrides for single kinds.
    pub agents: BTreeMap<String, SubagentOverrideConfig>,
    /// Custom kinds.
    pub custom_agents: BTreeMap<String, CustomSubagentConfig>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl Default for SubagentsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout_seconds: 1800,
            max_turns: None,
            max_total_per_run: 6,
            max_running: 32,
            token_budget: SubagentBudgetConfig::default(),
            agents: BTreeMap::new(),
            custom_agents: BTreeMap::new(),
            extra: OpenKeys::default(),
        }
    }
}

/// Overrides for one kind of subagent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentOverrideConfig {
    /// Timeout, in seconds.
    pub timeout_seconds: Option<u64>,
    /// Maximum number of steps.
    pub max_turns: Option<u64>,
    /// Model entry; `inherit` for the model of the calling agent.
    pub model: Option<String>,
    /// Allowed skills.
    pub skills: Option<Vec<String>>,
    /// Token budget.
    pub token_budget: Option<SubagentBudgetConfig>,
}

/// Custom kind of subagent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CustomSubagentConfig {
    /// Purpose of the subagent; shown to the model that selects one.
    pub description: String,
    /// System prompt.
    pub system_prompt: String,
    /// Allowed tools; null for all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Denied tools.
    #[serde(default = "tools_denied_to_subagents")]
    pub disallowed_tools: Option<Vec<String>>,
    /// Allowed skills; null for all.
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    /// Model entry; `inherit` for the model of the calling agent.
    #[serde(default = "default_custom_model")]
    pub model: String,
    /// Maximum number of steps.
    #[serde(default = "default_custom_max_turns")]
    pub max_turns: u64,
    /// Timeout, in seconds.
    #[serde(default = "default_custom_timeout_seconds")]
    pub timeout_seconds: u64,
}

impl CustomSubagentConfig {
    /// Creates a kind with defaults for all other keys.
    pub fn new(description: impl Into<String>, system_prompt: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            system_prompt: system_prompt.into(),
            tools: None,
            disallowed_tools: tools_denied_to_subagents(),
            skills: None,
            model: default_custom_model(),
            max_turns: default_custom_max_turns(),
            timeout_seconds: default_custom_timeout_seconds(),
        }
    }
}

/// Token budget. Absent fields use the defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentBudgetConfig {
    /// Enables the budget.
    pub enabled: Option<bool>,
    /// Maximum tokens of all model calls together.
    pub max_tokens: Option<u64>,
    /// Maximum input tokens.
    pub max_input_tokens: Option<u64>,
    /// Maximum output tokens.
    pub max_output_tokens: Option<u64>,
    /// Share of the budget at which the model is warned.
    pub warn_threshold: Option<f64>,
    /// Share of the budget at which the agent is ended.
    pub hard_stop_threshold: Option<f64>,
}

impl SubagentBudgetConfig {
    /// Returns the default budget. It is smaller for an agent whose conversation is summarized.
    pub fn usual(is_summarized: bool) -> TokenBudgetConfig {
        TokenBudgetConfig {
            enabled: true,
            max_tokens: if is_summarized { 1_000_000 } else { 2_000_000 },
            warn_threshold: 0.7,
            ..TokenBudgetConfig::default()
        }
    }

    /// Returns `base`, overridden by the fields that are set in this budget.
    pub fn over(&self, base: TokenBudgetConfig) -> TokenBudgetConfig {
        TokenBudgetConfig {
            enabled: self.enabled.unwrap_or(base.enabled),
            max_tokens: self.max_tokens.unwrap_or(base.max_tokens),
            max_input_tokens: self.max_input_tokens.or(base.max_input_tokens),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            warn_threshold: self.warn_threshold.unwrap_or(base.warn_threshold),
            hard_stop_threshold: self.hard_stop_threshold.unwrap_or(base.hard_stop_threshold),
        }
    }
}

fn tools_denied_to_subagents() -> Option<Vec<String>> {
    Some(DENIED_TO_SUBAGENTS.map(str::to_owned).to_vec())
}

fn default_custom_model() -> String {
    "inherit".to_owned()
}

fn default_custom_max_turns() -> u64 {
    50
}

fn default_custom_timeout_seconds() -> u64 {
    900
}

impl SubagentsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("timeout_seconds", self.timeout_seconds, 1..);
        check.within_if_set("max_turns", self.max_turns, 1..);
        check.within("max_total_per_run", self.max_total_per_run, 1..=50);
        check.within("max_running", self.max_running, 1..=100_000);
        check.under("token_budget", |check| {
            self.token_budget
                .over(SubagentBudgetConfig::usual(false))
                .check(check)
        });
        check.under("agents", |check| {
            self.agents
                .iter()
                .for_each(|(name, agent)| check.under(name, |check| agent.check(check)))
        });
        check.under("custom_agents", |check| {
            self.custom_agents
                .iter()
                .for_each(|(name, agent)| check.under(name, |check| agent.check(check)));
        });
    }
}

impl SubagentOverrideConfig {
    fn check(&self, check: &mut Checker) {
        check.within_if_set("timeout_seconds", self.timeout_seconds, 1..);
        check.within_if_set("max_turns", self.max_turns, 1..);
        if let Some(model) = &self.model {
            check.not_blank("model", model);
        }
        if let Some(budget) = &self.token_budget {
            check.under("token_budget", |check| {
                budget.over(SubagentBudgetConfig::usual(false)).check(check)
            });
        }
    }
}

impl CustomSubagentConfig {
    fn check(&self, check: &mut Checker) {
        check.not_blank("description", &self.description);
        check.not_blank("system_prompt", &self.system_prompt);
        check.not_blank("model", &self.model);
        check.within("max_turns", self.max_turns, 1..);
        check.within("timeout_seconds", self.timeout_seconds, 1..);
    }
}
