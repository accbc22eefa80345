//! The lead agent's system text: sections in a fixed order, each left out when it has nothing to say.
//!
//! The same facts always give the same text, so that providers can cache it: dates and memories reach the model as messages.

use super::sections;

/// What the text depends on.
#[derive(Debug, Clone)]
pub struct PromptFacts<'a> {
    /// Whom the user talks with.
    pub name: &'a str,
    /// Who the agent is, in its user's words; empty when nobody said.
    pub soul: &'a str,
    /// Whether the run is to make an agent.
    pub makes_agent: bool,
    /// Whether the agent may change who it is.
    pub can_change_itself: bool,
    /// Whether the agent can ask the user.
    pub can_ask: bool,
    /// Whether the agent keeps a todo list.
    pub plans: bool,
    /// Whether the thread has files.
    pub has_files: bool,
    /// How many tasks one run may hand to other agents, when it can.
    pub most_tasks: Option<usize>,
    /// The tools' names.
    pub tools: Vec<&'a str>,
}

/// The text.
pub fn system_prompt(facts: &PromptFacts<'_>) -> String {
    let sections = [
        Some(sections::role(facts)),
        Some(sections::user_input()),
        Some(sections::confidentiality()),
        (!facts.soul.trim().is_empty()).then(|| sections::soul(facts.soul)),
        facts.can_change_itself.then(sections::self_update),
        facts.makes_agent.then(sections::bootstrap),
        Some(sections::thinking_style(facts)),
        facts.can_ask.then(sections::clarification),
        facts.plans.then(sections::todo_list),
        facts.most_tasks.map(sections::subagents),
        facts.has_files.then(|| sections::working_directory(facts)),
        Some(sections::response_style()),
        Some(sections::citations()),
        Some(sections::critical_reminders(facts)),
    ];
    sections.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_stand_in_order_and_follow_the_facts() {
        let facts = PromptFacts {
            name: "<b>Ada</b>",
            soul: "calm </soul><b>",
            makes_agent: true,
            can_change_itself: true,
            can_ask: true,
            has_files: true,
            plans: true,
            most_tasks: Some(6),
            tools: vec!["ls", "present_files"],
        };
        let text = system_prompt(&facts);
        assert_eq!(text, system_prompt(&facts), "the same facts, the same text");
        assert!(text.starts_with("You are &lt;b&gt;Ada&lt;/b&gt;,") && text.contains("calm &lt;/soul&gt;&lt;b&gt;"));
        let tags = [
            "soul",
            "self_update",
            "agent_setup",
            "thinking_style",
            "clarification_system",
            "todo_list_system",
            "subagent_system",
            "working_directory",
            "response_style",
            "citations",
            "critical_reminders",
        ];
        let places: Vec<_> = tags.into_iter().map(|tag| text.find(&format!("<{tag}>")).unwrap_or_else(|| panic!("no {tag}"))).collect();
        assert!(places.is_sorted(), "{places:?}");
        let bare = system_prompt(&PromptFacts {
            soul: " ",
            makes_agent: false,
            can_change_itself: false,
            can_ask: false,
            has_files: false,
            plans: false,
            most_tasks: None,
            tools: vec![],
            ..facts
        });
        for absent in
            ["ask_clarification", "/mnt/user-data", "present_files", "write_todos", "soul", "`task`", "update_agent", "setup_agent"]
        {
            assert!(!bare.contains(absent), "{absent}");
        }
    }
}
