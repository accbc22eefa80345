//! Tests of questions to the user: the card, the end of the run, and the forms in which models
//! write options.

use std::sync::Arc;

use super::options::options_of;
use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::*;
use crate::messages::MessageKind;
use crate::runtime::agent::{Agent, StopKind};
use crate::tools::builtins::AskClarification;

fn agent(replies: Vec<Reply>) -> Arc<dyn Agent> {
    AgentBuilder::new(ReplayModel::new(replies))
        .tool(AskClarification)
        .middleware(ClarificationMiddleware)
        .build()
}

fn question() -> Value {
    json!({ "question": "Which colour?", "clarification_type": "approach_choice", "options": ["red", "blue"] })
}

#[tokio::test]
async fn question_renders_card_and_ends_run_after_sibling_calls() {
    let output = ask(
        &agent(vec![calls([
            ("call_7", "ask_clarification", question()),
            ("other", "nothing", json!({})),
        ])]),
        "paint",
    )
    .await;
    assert_eq!(output.outcome.as_ref().unwrap().kind, StopKind::Completed);
    let messages = output.state().messages();
    assert_eq!(messages.len(), 4);
    let card = &messages[2];
    assert_eq!(card.id.as_deref(), Some("clarification:call_7"));
    assert_eq!(
        card.content.text(),
        "🔀 Which colour?\n\n  1. red\n  2. blue"
    );
    let MessageKind::Tool { artifact, .. } = &card.kind else {
        panic!("not a result")
    };
    assert_eq!(
        *artifact,
        json!({ "human_input": {
            "version": 1, "kind": "human_input_request", "source": "ask_clarification", "request_id": "clarification:call_7",
            "clarification_type": "approach_choice", "question": "Which colour?", "input_mode": "choice_with_other",
            "tool_call_id": "call_7",
            "options": [{ "id": "option-1", "label": "red", "value": "red" }, { "id": "option-2", "label": "blue", "value": "blue" }],
        }})
    );
    let mut state = crate::state::ThreadState::clone(output.state());
    let answer = Message::human("red").with(|body| body.id = Some("h9".to_owned()));
    state
        .apply(
            crate::state::StateUpdate::messages([answer]),
            &crate::ids::SeededIds::new(9),
        )
        .unwrap();
    let more = run(&agent(vec![Reply::Say("red it is")]), fresh(state), |_| {}).await;
    assert_eq!(
        more.transcript().last().map(String::as_str),
        Some("ai:red it is")
    );
}

#[tokio::test]
async fn card_stays_when_later_call_reuses_id() {
    let turn = || vec![calls([("call_0", "ask_clarification", question())])];
    let first = ask(&agent(turn()), "paint").await;
    let mut messages = first.state().messages().to_vec();
    messages.push(Message::human("red"));
    let second = run(&agent(turn()), fresh(state_of(messages)), |_| {}).await;
    let ids: Vec<_> = second
        .state()
        .messages()
        .iter()
        .map(|message| message.id.as_deref().unwrap())
        .collect();
    assert_eq!(ids.len(), 6);
    assert_eq!(ids[2], "clarification:call_0");
    assert_eq!(ids[5], format!("clarification:call_0:{}", ids[4]));
    let MessageKind::Tool { artifact, .. } = &second.state().messages()[5].kind else {
        panic!("not a result")
    };
    assert_eq!(artifact["human_input"]["request_id"], ids[5]);
}

#[tokio::test]
async fn clarification_disabled_continues_run() {
    let agent = agent(vec![
        calls([("c", "ask_clarification", question())]),
        Reply::Say("I chose red"),
    ]);
    let options = Arc::new(Map::from_iter([(DISABLED.to_owned(), json!(true))]));
    let output = run(&agent, fresh(state_of([Message::human("paint")])), |ctx| {
        ctx.options = options
    })
    .await;
    assert_eq!(
        output.transcript().last().map(String::as_str),
        Some("ai:I chose red")
    );
    assert!(output.transcript()[2].contains("best judgement"));
}

#[test]
fn options_are_parsed_in_every_form() {
    for (written, understood) in [
        (json!(["a", " a ", "b", "", null]), vec!["a", "b"]),
        (json!("[\"a\", {\"x\": 1}]"), vec!["a", "1"]),
        (json!("just one"), vec!["just one"]),
        (
            json!({"first": "a", "more": {"second": "b"}}),
            vec!["a", "b"],
        ),
        (
            json!(["<option>a</option>", "x < y", "1 <", "<"]),
            vec!["a", "x < y", "1 <", "<"],
        ),
        (
            json!(["1 < 2 <b>c</b> <open", "a</"]),
            vec!["1 < 2 c <open", "a</"],
        ),
        (json!(null), vec![]),
    ] {
        assert_eq!(options_of(Some(&written)), understood, "{written}");
    }
}

#[test]
fn card_without_ids_or_texts_has_stable_id() {
    let call = ToolCall::new("", ASK_CLARIFICATION, Map::new());
    let result = card(&call, &[]);
    assert_eq!(result.message_id, card(&call, &[]).message_id);
    assert_eq!(
        result.message_id.as_ref().map(|id| id.len()),
        Some("clarification:".len() + 16)
    );
    assert_eq!(result.artifact["human_input"]["input_mode"], "free_text");
}

#[test]
fn unclosed_tags_are_parsed_in_linear_time() {
    let hostile = "<a".repeat(200_000);
    assert_eq!(options_of(Some(&json!([hostile.clone()]))), [hostile]);
    let lone = "< ".repeat(200_000);
    assert_eq!(options_of(Some(&json!([lone.clone()]))), [lone.trim()]);
}
