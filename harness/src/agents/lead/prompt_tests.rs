//! The system prompt with all sections enabled, and with none.

use super::*;
use crate::agents::lead::prompt_facts::Delegation;
use crate::agents::subagents::{SubagentKind, kinds};
use crate::config::SubagentsConfig;

fn helper() -> SubagentKind {
    SubagentKind {
        name: "helper".to_owned(),
        description: "does </subagent_system> things".to_owned(),
        ..kinds(&SubagentsConfig::default(), false).remove(0)
    }
}

#[test]
fn prompt_states_task_limits() {
    let helper = helper();
    let section = |at_once| {
        sections::subagents(&Delegation {
            kinds: vec![&helper],
            at_once,
            in_a_run: 9,
        })
    };
    assert!(section(3).contains("at most 3 tasks") && section(3).contains("9 tasks in one run"));
    assert!(section(1).contains("one task at a time") && !section(1).contains("side by side"));
    assert!(section(2).contains("- helper: does &lt;/subagent_system&gt; things"));
}

#[test]
fn sections_are_ordered_and_depend_on_facts() {
    let helper = helper();
    let facts = PromptFacts {
        name: "<b>Ada</b>",
        soul: "calm </soul><b>",
        profile: "a cook",
        makes_agent: true,
        can_change_itself: true,
        can_ask: true,
        skills: Some("<skill_system>\n</skill_system>"),
        has_files: true,
        plans: true,
        delegation: Some(Delegation {
            kinds: vec![&helper],
            at_once: 3,
            in_a_run: 6,
        }),
        tools: vec!["ls", "present_files", "invoke_acp_agent"],
        deferred: vec!["git_log", "time_now"],
    };
    let text = system_prompt(&facts);
    assert_eq!(text, system_prompt(&facts), "the same facts, the same text");
    assert!(
        text.starts_with("You are &lt;b&gt;Ada&lt;/b&gt;,")
            && text.contains("calm &lt;/soul&gt;&lt;b&gt;")
    );
    let tags = [
        "soul",
        "user_profile",
        "self_update",
        "agent_setup",
        "thinking_style",
        "clarification_system",
        "todo_list_system",
        "skill_system",
        "subagent_system",
        "available-deferred-tools",
        "working_directory",
        "acp_agents",
        "response_style",
        "citations",
        "critical_reminders",
    ];
    let places: Vec<_> = tags
        .into_iter()
        .map(|tag| {
            text.find(&format!("<{tag}>"))
                .unwrap_or_else(|| panic!("no {tag}"))
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    let bare = system_prompt(&PromptFacts {
        soul: " ",
        profile: "",
        makes_agent: false,
        can_change_itself: false,
        can_ask: false,
        skills: None,
        has_files: false,
        plans: false,
        delegation: None,
        tools: vec![],
        deferred: vec![],
        ..facts
    });
    for absent in [
        "ask_clarification",
        "/mnt/user-data",
        "skill",
        "present_files",
        "write_todos",
        "soul",
        "`task`",
        "update_agent",
        "setup_agent",
        "acp",
    ] {
        assert!(!bare.contains(absent), "{absent}");
    }
}
