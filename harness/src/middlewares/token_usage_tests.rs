//! Tests of the attribution of tokens to purposes.

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, ask, calls};

#[test]
fn removed_calls_are_not_attributed() {
    let call = ToolCall::new("a", "bash", Default::default());
    let calling = Message::ai("").with(|body| {
        if let crate::messages::MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            tool_calls.push(call);
        }
    });
    let kind = |answer: &Message| {
        answer.additional_kwargs[kwargs::TOKEN_USAGE_ATTRIBUTION]["kind"].clone()
    };
    let annotated = attributed(&calling);
    let stopped = super::super::answers::stop_answer(&annotated, "loop_capped", "I stop here.");
    assert_eq!(
        (kind(&annotated), kind(&stopped)),
        (json!("tool_batch"), json!("final_answer"))
    );
    assert!(
        !super::super::answers::stop_answer(&calling, "x", "y")
            .additional_kwargs
            .contains_key(kwargs::TOKEN_USAGE_ATTRIBUTION)
    );
}

#[tokio::test]
async fn answers_carry_usage_attribution() {
    let edit = ("a", "write_file", json!({"description": "write"}));
    let replies = [
        calls([edit, ("b", "ask_clarification", json!({}))]),
        calls([("c", "write_todos", json!({}))]),
        calls([("d", "task", json!({})), ("e", "task", json!({}))]),
        Reply::Say("done"),
    ];
    let output = ask(
        &AgentBuilder::new(ReplayModel::new(replies))
            .middleware(TokenUsageMiddleware)
            .build(),
        "go",
    )
    .await;
    let answers = output
        .state()
        .messages()
        .iter()
        .filter(|message| message.is_ai());
    let annotated: Vec<&Value> = answers
        .map(|answer| &answer.additional_kwargs[kwargs::TOKEN_USAGE_ATTRIBUTION])
        .collect();
    let kinds: Vec<&str> = annotated
        .iter()
        .map(|note| note["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "tool_batch",
            "todo_update",
            "subagent_dispatch",
            "final_answer"
        ]
    );
    let actions = json!([
        {"kind": "tool", "tool_name": "write_file", "description": "write", "tool_call_id": "a"},
        {"kind": "clarification", "tool_name": "ask_clarification", "tool_call_id": "b"},
    ]);
    assert_eq!(
        (
            &annotated[0]["actions"],
            &annotated[0]["shared_attribution"]
        ),
        (&actions, &json!(true))
    );
    assert_eq!(
        annotated[3],
        &json!({"version": 1, "kind": "final_answer", "shared_attribution": false, "tool_call_ids": [], "actions": []})
    );
}
