//! Kinds of a configuration: two built-in kinds, custom kinds, and overrides.

use std::time::Duration;

use super::kind::SubagentKind;
use super::prompt;
use crate::config::{
    CustomSubagentConfig, SubagentBudgetConfig, SubagentOverrideConfig, SubagentsConfig,
    TokenBudgetConfig,
};
use crate::middlewares::TASK;
use crate::tools::builtins::ASK_CLARIFICATION;

/// Kind for general work.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// Kind for series of shell commands.
pub const BASH: &str = "bash";

/// Default step limits of the built-in kinds.
const GENERAL_PURPOSE_TURNS: u64 = 150;
const BASH_TURNS: u64 = 60;
/// Tools of the kind for shell commands; without the first one the kind is not available.
const BASH_TOOLS: [&str; 5] = ["bash", "ls", "read_file", "write_file", "str_replace"];
/// Model name that selects the model of the lead agent.
const INHERIT: &str = "inherit";

/// Returns all kinds of a configuration, built-in kinds first. `is_shortened` is `true` if long
/// conversations are summarized.
pub fn kinds(config: &SubagentsConfig, is_shortened: bool) -> Vec<SubagentKind> {
    let budget = config
        .token_budget
        .over(SubagentBudgetConfig::usual(is_shortened));
    let built_in = [general_purpose(config, &budget), bash(config, &budget)];
    let is_new = |name: &str| {
        let new = built_in.iter().all(|kind| kind.name != name);
        if !new {
            tracing::warn!(
                name,
                "subagents.custom_agents cannot replace a built-in agent, ignoring the entry"
            );
        }
        new
    };
    let others = config
        .custom_agents
        .iter()
        .filter(|(name, _)| is_new(name))
        .map(|(name, entry)| custom(name, entry, &budget));
    let others: Vec<_> = others.collect();
    let change = |kind: SubagentKind| match config.agents.get(&kind.name) {
        Some(changes) => kind.with(changes),
        None => kind,
    };
    built_in.into_iter().chain(others).map(change).collect()
}

impl SubagentKind {
    fn with(mut self, change: &SubagentOverrideConfig) -> Self {
        if let Some(seconds) = change.timeout_seconds {
            self.time_limit = Duration::from_secs(seconds);
        }
        self.max_turns = change.max_turns.unwrap_or(self.max_turns);
        self.model = change.model.as_deref().map_or(self.model, model);
        self.skills = change.skills.clone().or(self.skills);
        if let Some(budget) = change.token_budget {
            self.budget = budget.over(self.budget);
        }
        self
    }
}

fn general_purpose(config: &SubagentsConfig, budget: &TokenBudgetConfig) -> SubagentKind {
    SubagentKind {
        name: GENERAL_PURPOSE.to_owned(),
        description: prompt::GENERAL_PURPOSE_USE.to_owned(),
        system_prompt: prompt::GENERAL_PURPOSE.to_owned(),
        tools: None,
        disallowed_tools: [TASK, ASK_CLARIFICATION, "present_files"]
            .map(str::to_owned)
            .to_vec(),
        skills: None,
        model: None,
        max_turns: config.max_turns.unwrap_or(GENERAL_PURPOSE_TURNS),
        time_limit: Duration::from_secs(config.timeout_seconds),
        budget: budget.clone(),
    }
}

fn bash(config: &SubagentsConfig, budget: &TokenBudgetConfig) -> SubagentKind {
    SubagentKind {
        name: BASH.to_owned(),
        description: prompt::BASH_USE.to_owned(),
        system_prompt: prompt::BASH.to_owned(),
        tools: Some(BASH_TOOLS.map(str::to_owned).to_vec()),
        max_turns: config.max_turns.unwrap_or(BASH_TURNS),
        ..general_purpose(config, budget)
    }
}

fn custom(name: &str, entry: &CustomSubagentConfig, budget: &TokenBudgetConfig) -> SubagentKind {
    SubagentKind {
        name: name.to_owned(),
        description: entry.description.clone(),
        system_prompt: entry.system_prompt.clone(),
        tools: entry.tools.clone(),
        disallowed_tools: entry.disallowed_tools.clone().unwrap_or_default(),
        skills: entry.skills.clone(),
        model: model(&entry.model),
        max_turns: entry.max_turns,
        time_limit: Duration::from_secs(entry.timeout_seconds),
        budget: budget.clone(),
    }
}

fn model(name: &str) -> Option<String> {
    (name != INHERIT).then(|| name.to_owned())
}
