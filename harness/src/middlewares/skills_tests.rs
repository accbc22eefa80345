//! Tests of the active skills of a conversation.

use serde_json::json;

use super::*;
use crate::tools::builtins::ASK_CLARIFICATION;

fn read_call(id: &str, path: &str) -> ToolCall {
    ToolCall::new(
        id,
        READ,
        json!({ "path": path }).as_object().cloned().unwrap(),
    )
}

fn calling(call: &ToolCall) -> Message {
    Message::ai("").with(|body| {
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            tool_calls.push(call.clone());
        }
    })
}

fn active(messages: &[Message]) -> ActiveSkills {
    active_skills(&messages.iter().collect::<Vec<_>>())
}

fn path(text: &str) -> VirtualPath {
    VirtualPath::parse_readable(text).unwrap()
}

#[test]
fn last_user_message_selects_skill() {
    let hidden = Message::human("/deep-research hidden").with(|body| {
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), true.into());
    });
    let messages = [
        Message::human("/deep-research the moon"),
        Message::ai("done"),
        hidden,
    ];
    assert_eq!(
        active(&messages),
        ActiveSkills::Called {
            name: "deep-research".to_owned(),
            at: 0
        }
    );
    let later = [&messages[..], &[Message::human("thanks")]].concat();
    assert_eq!(active(&later), ActiveSkills::Nothing);
    assert_eq!(active(&[]), ActiveSkills::Nothing);
}

#[test]
fn skill_is_active_after_its_file_is_read() {
    let file = "/mnt/skills/public/web/SKILL.md";
    let (good, failed, other, early) = (
        read_call("1", file),
        read_call("2", "/mnt/skills/public/gone/SKILL.md"),
        read_call("3", "/mnt/skills/public/web/notes.md"),
        read_call("0", "/mnt/skills/public/early/SKILL.md"),
    );
    let messages = [
        calling(&early),
        Message::tool(&early, "text", ToolStatus::Success),
        Message::human("go"),
        calling(&good),
        Message::tool(&good, "text", ToolStatus::Success),
        calling(&failed),
        Message::tool(&failed, "Error: no such file", ToolStatus::Error),
        calling(&other),
        Message::tool(&other, "text", ToolStatus::Success),
        calling(&read_call("4", "/mnt/user-data/workspace/SKILL.md")),
    ];
    assert_eq!(active(&messages), ActiveSkills::Read(vec![path(file)]));
    assert_eq!(
        active(&messages[..4]),
        ActiveSkills::Nothing,
        "a call without a result activates no skill"
    );
}

#[test]
fn answer_to_agent_keeps_skill_active() {
    let ask = ToolCall::new("q", ASK_CLARIFICATION, serde_json::Map::new());
    let called = ActiveSkills::Called {
        name: "deep-research".to_owned(),
        at: 0,
    };
    let question = [
        Message::human("/deep-research it"),
        calling(&ask),
        Message::tool(&ask, "what?", ToolStatus::Success),
    ];
    let typed = [&question[..], &[Message::human("the moon")]].concat();
    assert_eq!(active(&typed), called);
    let response = json!({"version": 1, "kind": "human_input_response", "source": "ask_clarification", "request_id": "r",
        "response_kind": "text", "value": "the moon"});
    let card = Message::human("the moon").with(|body| {
        body.additional_kwargs
            .insert(kwargs::HUMAN_INPUT_RESPONSE.to_owned(), response);
    });
    assert_eq!(
        active(&[&question[..], &[Message::ai("well"), card]].concat()),
        called
    );
    let again = [
        &typed[..],
        &question[1..],
        &[Message::human("the far side")],
    ]
    .concat();
    assert_eq!(
        active(&again),
        called,
        "also after several questions of the agent"
    );
    let other = [&question[..], &[Message::human("/slides instead")]].concat();
    assert_eq!(
        active(&other),
        ActiveSkills::Called {
            name: "slides".to_owned(),
            at: 3
        }
    );
    let done = [&typed[..], &[Message::ai("done"), Message::human("thanks")]].concat();
    assert_eq!(active(&done), ActiveSkills::Nothing);
}
