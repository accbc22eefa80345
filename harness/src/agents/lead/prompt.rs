//! The lead agent's system text: sections in a fixed order, each left out when it has nothing to say.
//!
//! The same facts always give the same text, so that providers can cache it: dates and memories reach the model as messages.

use super::sections;

/// What the text depends on.
#[derive(Debug, Clone)]
pub struct PromptFacts<'a> {
    /// Whom the user talks with.
    pub name: &'a str,
    /// Whether the agent can ask the user.
    pub can_ask: bool,
    /// Whether the agent keeps a todo list.
    pub plans: bool,
    /// Whether the thread has files.
    pub has_files: bool,
    /// The tools' names.
    pub tools: Vec<&'a str>,
}

/// The text.
pub fn system_prompt(facts: &PromptFacts<'_>) -> String {
    let sections = [
        Some(sections::role(facts)),
        Some(sections::user_input()),
        Some(sections::confidentiality()),
        Some(sections::thinking_style(facts)),
        facts.can_ask.then(sections::clarification),
        facts.plans.then(sections::todo_list),
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
        let facts = PromptFacts { name: "<b>Ada</b>", can_ask: true, has_files: true, plans: true, tools: vec!["ls", "present_files"] };
        let text = system_prompt(&facts);
        assert_eq!(text, system_prompt(&facts), "the same facts, the same text");
        assert!(text.starts_with("You are &lt;b&gt;Ada&lt;/b&gt;,"));
        let places: Vec<_> = [
            "<thinking_style>",
            "<clarification_system>",
            "<todo_list_system>",
            "<working_directory>",
            "<response_style>",
            "<critical_reminders>",
        ]
        .into_iter()
        .map(|tag| text.find(tag).unwrap())
        .collect();
        assert!(places.is_sorted());
        let bare = system_prompt(&PromptFacts { can_ask: false, has_files: false, plans: false, tools: vec![], ..facts });
        assert!(
            !bare.contains("ask_clarification")
                && !bare.contains("write_todos")
                && !bare.contains("/mnt/user-data")
                && !bare.contains("present_files")
        );
    }
}
