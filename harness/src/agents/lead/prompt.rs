//! System prompt of the lead agent: sections in a fixed order; empty sections are omitted.
//!
//! Equal facts produce equal text, so that providers can cache it. Dates and memories are sent as
//! messages instead.

use super::prompt_facts::PromptFacts;
use super::sections;
use crate::agents::dynamic_tools::deferred_section;

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
        (!facts.deferred.is_empty()).then(|| deferred_section(&facts.deferred)),
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
