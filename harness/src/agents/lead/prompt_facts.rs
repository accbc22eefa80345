//! Facts about a lead agent that its system prompt states.

use crate::agents::subagents::SubagentKind;

/// Facts from which the prompt is built.
#[derive(Debug, Clone)]
pub struct PromptFacts<'a> {
    /// Display name of the agent.
    pub name: &'a str,
    /// The agent's soul, written by the user; may be empty.
    pub soul: &'a str,
    /// Profile of the user; may be empty.
    pub profile: &'a str,
    /// `true` if the run creates a custom agent.
    pub makes_agent: bool,
    /// `true` if the agent may change its own definition.
    pub can_change_itself: bool,
    /// `true` if the agent can ask the user.
    pub can_ask: bool,
    /// Skills section, if the agent has skills.
    pub skills: Option<&'a str>,
    /// `true` if the agent uses a todo list.
    pub plans: bool,
    /// `true` if the thread has files.
    pub has_files: bool,
    /// Subagents to which the agent can delegate tasks, if any.
    pub delegation: Option<Delegation<'a>>,
    /// Names of all tools.
    pub tools: Vec<&'a str>,
    /// Names of the deferred tools, which the agent must search for before it can call them.
    pub deferred: Vec<&'a str>,
}

/// Subagents and limits for delegated tasks.
#[derive(Debug, Clone)]
pub struct Delegation<'a> {
    /// Available kinds of subagents.
    pub kinds: Vec<&'a SubagentKind>,
    /// Maximum number of tasks in one answer.
    pub at_once: usize,
    /// Maximum number of tasks in one run.
    pub in_a_run: usize,
}
