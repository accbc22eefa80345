//! The lead agent's system text: sections in a fixed order, each left out when it has nothing to say.
//!
//! The same facts always give the same text, so that providers can cache it: dates and memories reach the model as messages.

use super::sections;
use crate::subagents::SubagentKind;

/// What the text depends on.
#[derive(Debug, Clone)]
pub struct PromptFacts<'a> {
    /// Whom the user talks with.
    pub name: &'a str,
    /// Who the agent is, in its user's words; empty when nobody said.
    pub soul: &'a str,
    /// What the user says of themselves; empty when they said nothing.
    pub profile: &'a str,
    /// Whether the run is to make an agent.
    pub makes_agent: bool,
    /// Whether the agent may change who it is.
    pub can_change_itself: bool,
    /// Whether the agent can ask the user.
    pub can_ask: bool,
    /// What is said of its skills, when it has some.
    pub skills: Option<&'a str>,
    /// Whether the agent keeps a todo list.
    pub plans: bool,
    /// Whether the thread has files.
    pub has_files: bool,
    /// Whom the agent may hand tasks to, when it can.
    pub delegation: Option<Delegation<'a>>,
    /// The tools' names.
    pub tools: Vec<&'a str>,
    /// Those of them that have to be looked for.
    pub deferred: Vec<&'a str>,
}

/// The agents that tasks can be handed to, and how many tasks.
#[derive(Debug, Clone)]
pub struct Delegation<'a> {
    /// The kinds of agents.
    pub kinds: Vec<&'a SubagentKind>,
    /// The most tasks of one answer.
    pub at_once: usize,
    /// The most tasks of one run.
    pub in_a_run: usize,
}

/// The text.
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
