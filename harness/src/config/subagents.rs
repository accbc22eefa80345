//! `subagents`: agents that an agent sets to work, what they may use, and kinds of them besides the built-in ones.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TokenBudgetConfig;
use super::check::Checker;
use super::open_keys::OpenKeys;

/// Tools that no agent has which another one sets to work, unless its entry says otherwise.
const KEPT_FROM_OTHERS: [&str; 3] = ["task", "ask_clarification", "present_files"];

/// Agents that an agent sets to work.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentsConfig {
    /// Whether runs that ask for them get them.
    pub enabled: bool,
    /// Seconds that one of them may work.
    pub timeout_seconds: u64,
    /// Most steps of a built-in one; null for its own number.
    pub max_turns: Option<u64>,
    /// Most of them in one run.
    pub max_total_per_run: usize,
    /// How many of one server may be at work at the same time; others wait.
    pub max_running: usize,
    /// What one of them may cost.
    pub token_budget: SubagentBudgetConfig,
    /// Other limits and models for some of them.
    pub agents: BTreeMap<String, SubagentOverrideConfig>,
    /// Further kinds.
    pub custom_agents: BTreeMap<String, CustomSubagentConfig>,
    /// The other keys.
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

/// What one of them differs in.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentOverrideConfig {
    /// Seconds that it may work.
    pub timeout_seconds: Option<u64>,
    /// Its most steps.
    pub max_turns: Option<u64>,
    /// Its model entry; `inherit` for the one of who sets it to work.
    pub model: Option<String>,
    /// The skills it may use.
    pub skills: Option<Vec<String>>,
    /// What it may cost.
    pub token_budget: Option<SubagentBudgetConfig>,
}

/// A further kind.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CustomSubagentConfig {
    /// When it is to be used; the model that chooses reads this.
    pub description: String,
    /// Who it is and how it works.
    pub system_prompt: String,
    /// The tools it may have; null for all.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// The tools it may not have.
    #[serde(default = "kept_from_others")]
    pub disallowed_tools: Option<Vec<String>>,
    /// The skills it may use; null for all.
    #[serde(default)]
    pub skills: Option<Vec<String>>,
    /// Its model entry; `inherit` for the one of who sets it to work.
    #[serde(default = "inherit")]
    pub model: String,
    /// Its most steps.
    #[serde(default = "fifty")]
    pub max_turns: u64,
    /// Seconds that it may work.
    #[serde(default = "a_quarter_of_an_hour")]
    pub timeout_seconds: u64,
}

impl CustomSubagentConfig {
    /// A kind that is as a configuration has it which says no more than this.
    pub fn new(description: impl Into<String>, system_prompt: impl Into<String>) -> Self {
        Self {
            description: description.into(),
            system_prompt: system_prompt.into(),
            tools: None,
            disallowed_tools: kept_from_others(),
            skills: None,
            model: inherit(),
            max_turns: fifty(),
            timeout_seconds: a_quarter_of_an_hour(),
        }
    }
}

/// A budget of which what is absent is as it would be without it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubagentBudgetConfig {
    /// Whether there is a budget.
    pub enabled: Option<bool>,
    /// Tokens of all model calls together.
    pub max_tokens: Option<u64>,
    /// Tokens that are read.
    pub max_input_tokens: Option<u64>,
    /// Tokens that are written.
    pub max_output_tokens: Option<u64>,
    /// The share at which the model is told.
    pub warn_threshold: Option<f64>,
    /// The share at which the agent is brought to its end.
    pub hard_stop_threshold: Option<f64>,
}

impl SubagentBudgetConfig {
    /// The budget where nothing is configured. An agent whose conversation is shortened as it goes needs less.
    pub fn usual(is_shortened: bool) -> TokenBudgetConfig {
        TokenBudgetConfig {
            enabled: true,
            max_tokens: if is_shortened { 1_000_000 } else { 2_000_000 },
            warn_threshold: 0.7,
            ..TokenBudgetConfig::default()
        }
    }

    /// `base` with what is said here.
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

fn kept_from_others() -> Option<Vec<String>> {
    Some(KEPT_FROM_OTHERS.map(str::to_owned).to_vec())
}

fn inherit() -> String {
    "inherit".to_owned()
}

fn fifty() -> u64 {
    50
}

fn a_quarter_of_an_hour() -> u64 {
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
