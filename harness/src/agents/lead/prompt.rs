//! System prompt of the lead agent: sections in a fixed order; empty sections are omitted.
//!
//! Equal facts produce equal text, so that providers can cache it. Dates and memories are sent as
//! messages instead.

use super::sections;
use crate::subagents::SubagentKind;

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

/// Builds the system prompt.
pub fn system_prompt(facts: &PromptFacts<'_>) -> String {
    let sections = [
        Some(sections::role(facts)),
        Some(sections::user_input()),
        Some(sections::confidentiality()),
        (!facts.soul.trim().is_empty()).then(|| sections::soul(facts.soul)),
        (!facts.profile.trim().is_empty()).then(|| sections::user_profile(facts.profile)),
        facts.can_change_itself.then(sections::self_update),
        facts.makes_agent.then(sections::bootstrap),
        Some(sections::thinking_style(facts)),
        facts.can_ask.then(sections::clarification),
        facts.plans.then(sections::todo_list),
        facts.skills.map(str::to_owned),
        facts.delegation.as_ref().map(sections::subagents),
        (!facts.deferred.is_empty()).then(|| sections::deferred_tools(&facts.deferred)),
        facts.has_files.then(|| sections::working_directory(facts)),
        facts
            .tools
            .contains(&"invoke_acp_agent")
            .then(sections::acp_agents),
        Some(sections::response_style()),
        Some(sections::citations()),
        Some(sections::critical_reminders(facts)),
    ];
    sections
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
