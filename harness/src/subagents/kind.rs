//! The kinds of subagents: two built-in ones, those of the configuration, and what the configuration changes of them.

use std::time::Duration;

use super::prompt;
use crate::config::{
    CustomSubagentConfig, SubagentBudgetConfig, SubagentOverrideConfig, SubagentsConfig,
    TokenBudgetConfig,
};
use crate::middlewares::TASK;
use crate::tools::builtins::ASK_CLARIFICATION;

/// The kind for work of any sort.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// The kind for series of shell commands.
pub const BASH: &str = "bash";

/// Steps of the built-in kinds unless the configuration says otherwise.
const GENERAL_PURPOSE_TURNS: u64 = 150;
const BASH_TURNS: u64 = 60;
/// The tools of the kind for shell commands; it is of no use without the first.
const BASH_TOOLS: [&str; 5] = ["bash", "ls", "read_file", "write_file", "str_replace"];
/// The word for a model that is not its own.
const INHERIT: &str = "inherit";

/// One kind of subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentKind {
    /// What `subagent_type` calls it.
    pub name: String,
    /// When it is to be used.
    pub description: String,
    /// Who it is and how it works.
    pub system_prompt: String,
    /// The tools it may have; `None` for all that its lead agent has.
    pub tools: Option<Vec<String>>,
    /// The tools it may not have.
    pub disallowed_tools: Vec<String>,
    /// The skills it may use; `None` for all that its lead agent may.
    pub skills: Option<Vec<String>>,
    /// Its model entry; `None` for its lead agent's.
    pub model: Option<String>,
    /// The most steps of one task.
    pub max_turns: u64,
    /// How long it may work on one task.
    pub time_limit: Duration,
    /// What one task may cost.
    pub budget: TokenBudgetConfig,
}

impl SubagentKind {
    /// Whether it may have the tool of this name. No subagent hands out tasks itself.
    pub fn may_use(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        tool != TASK && !named(&self.disallowed_tools) && self.tools.as_deref().is_none_or(named)
    }

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

/// All kinds of a configuration, by name, the built-in ones first. `is_shortened` says whether long conversations are summarized.
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
                "subagents.custom_agents cannot replace a built-in agent; it is left out"
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
