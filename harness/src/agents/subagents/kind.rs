//! One kind of subagent, as data.

use std::time::Duration;

use crate::config::TokenBudgetConfig;
use crate::middlewares::TASK;

/// One kind of subagent.
#[derive(Debug, Clone, PartialEq)]
pub struct SubagentKind {
    /// Value of `subagent_type`.
    pub name: String,
    /// Description of the tasks for which the lead agent should use it.
    pub description: String,
    /// Role and instructions of the subagent.
    pub system_prompt: String,
    /// Allowed tools; `None` allows all tools of the lead agent.
    pub tools: Option<Vec<String>>,
    /// Denied tools.
    pub disallowed_tools: Vec<String>,
    /// Allowed skills; `None` allows all skills of the lead agent.
    pub skills: Option<Vec<String>>,
    /// Model entry; `None` selects the model of the lead agent.
    pub model: Option<String>,
    /// Maximum number of steps of one task.
    pub max_turns: u64,
    /// Timeout of one task.
    pub time_limit: Duration,
    /// Token budget of one task.
    pub budget: TokenBudgetConfig,
}

impl SubagentKind {
    /// `true` if it may use this tool. No subagent may delegate tasks.
    pub fn may_use(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        tool != TASK && !named(&self.disallowed_tools) && self.tools.as_deref().is_none_or(named)
    }
}
