//! Tests of the time and the position of a cut.

use serde_json::{Value, json};

use super::*;
use crate::agents::test_support::state_of;
use crate::messages::{MessageKind, ToolCall, ToolStatus, UsageMetadata};
use crate::state::{StateUpdate, ThreadState};

fn policy(config: Value, window: Option<u64>) -> Policy {
    Policy::new(
        &serde_json::from_value(config).unwrap(),
        window,
        TokenFamily::OpenAi,
    )
}

fn by_messages(trigger: u64, keep: u64) -> Policy {
    policy(
        json!({"trigger": {"type": "messages", "value": trigger}, "keep": {"type": "messages", "value": keep}}),
        None,
    )
}

fn caller(ids: &[&str]) -> Message {
    Message::ai("").with(|body| {
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            *tool_calls = ids
                .iter()
                .map(|id| ToolCall::new(*id, "ls", Default::default()))
                .collect();
        }
    })
}

fn result(id: &str) -> Message {
    Message::tool(
        &ToolCall::new(id, "ls", Default::default()),
        "r",
        ToolStatus::Success,
    )
}

fn answer(text: &str, total: u64) -> Message {
    Message::ai(text).with(|body| {
        if let MessageKind::Ai { usage_metadata, .. } = &mut body.kind {
            *usage_metadata = Some(Box::new(UsageMetadata {
                total_tokens: total,
                ..UsageMetadata::default()
            }));
        }
    })
}

fn chat(turns: usize) -> ThreadState {
    state_of((0..turns).flat_map(|n| {
        [
            Message::human(format!("q{n}")),
            Message::ai(format!("a{n}")),
        ]
    }))
}

fn due(policy: &Policy, state: &ThreadState) -> bool {
    policy.is_due(&View::of(state))
}

#[test]
fn any_trigger_suffices_and_fraction_needs_known_window() {
    assert!(!due(&policy(json!({}), None), &chat(100)));
    assert!(due(&by_messages(10, 4), &chat(5)) && !due(&by_messages(11, 4), &chat(5)));
    let long = state_of([Message::human("x".repeat(4_000))]);
    let tokens = |value: u64| {
        policy(
            json!({"trigger": [{"type": "messages", "value": 99}, {"type": "tokens", "value": value}]}),
            None,
        )
    };
    assert!(due(&tokens(1_000), &long) && !due(&tokens(1_100), &long));
    let share = |window| {
        policy(
            json!({"trigger": {"type": "fraction", "value": 0.5}}),
            window,
        )
    };
    assert!(
        due(&share(Some(2_000)), &long)
            && !due(&share(Some(4_000)), &long)
            && !due(&share(None), &long)
    );
}

#[test]
fn provider_count_wins_over_smaller_estimate() {
    let policy = policy(json!({"trigger": {"type": "tokens", "value": 5_000}}), None);
    let counted = state_of([
        Message::human("q"),
        answer("a", 4_990),
        Message::human("x".repeat(80)),
    ]);
    assert!(due(&policy, &counted));
    assert!(!due(
        &policy,
        &state_of([Message::human("q"), answer("a", 4_900), Message::human("y")])
    ));
}

#[test]
fn token_count_before_cut_is_ignored() {
    let policy = policy(json!({"trigger": {"type": "tokens", "value": 5_000}}), None);
    let mut state = state_of([
        Message::human("q"),
        answer("a", 9_000),
        Message::human("q"),
        answer("b", 9_000),
    ]);
    let update = View::of(&state).cut_at(2, "notes");
    state.apply(update, &crate::ids::SeededIds::new(1)).unwrap();
    assert!(!due(&policy, &state));
}

#[test]
fn cut_keeps_requested_size_up_to_half_of_trigger() {
    let cut = |policy: &Policy, turns| policy.cut(&View::of(&chat(turns)), None);
    assert_eq!(cut(&by_messages(30, 4), 10), Some(16));
    assert_eq!(cut(&by_messages(20, 19), 10), Some(10));
    assert_eq!(
        cut(&by_messages(2, 1), 1),
        None,
        "a single message is not summarized"
    );
    let keep = ContextSize {
        value: 6.0,
        ..by_messages(1, 1).keep
    };
    assert_eq!(
        by_messages(30, 4).cut(&View::of(&chat(10)), Some(keep)),
        Some(14)
    );
}

#[test]
fn cut_never_separates_call_from_results() {
    let messages = [
        Message::human("q"),
        Message::ai("a"),
        Message::human("go"),
        caller(&["x", "y"]),
        result("x"),
        result("y"),
        Message::ai("b"),
    ];
    assert_eq!(
        (0..7)
            .map(|at| pair_safe(&messages, at))
            .collect::<Vec<_>>(),
        [0, 1, 2, 3, 3, 3, 6]
    );
    assert_eq!(
        pair_safe(&[result("z"), result("z"), Message::ai("a")], 0),
        2,
        "results of unknown origin are skipped"
    );
}

#[test]
fn last_user_message_stays_in_view() {
    let mut state = state_of([
        Message::human("old"),
        Message::ai("a"),
        Message::human("go"),
        caller(&["x"]),
        result("x"),
        caller(&["y"]),
        result("y"),
    ]);
    let update = View::of(&state).cut_at(5, "<notes>");
    state.apply(update, &crate::ids::SeededIds::new(1)).unwrap();
    let seen: Vec<String> = View::of(&state)
        .messages()
        .iter()
        .map(|message| message.content.text())
        .collect();
    assert_eq!(seen.len(), 4);
    assert!(seen[0].contains("&lt;notes&gt;"));
    assert_eq!(&seen[1..], ["go", "", "r"]);
    assert_eq!(state.messages().len(), 7, "the thread retains all messages");
}

#[test]
fn summary_survives_removal_of_first_kept_message() {
    let mut state = state_of([
        Message::human("old"),
        Message::ai("a"),
        Message::ai(""),
        Message::human("go"),
    ]);
    let ids = crate::ids::SeededIds::new(1);
    let update = View::of(&state).cut_at(2, "notes");
    state.apply(update, &ids).unwrap();
    state
        .apply(
            StateUpdate::messages([Message::remove("h2".to_owned())]),
            &ids,
        )
        .unwrap();
    let view = View::of(&state);
    assert_eq!((view.summary(), view.kept().len()), (Some("notes"), 1));
    state
        .apply(
            StateUpdate::messages([Message::remove("h1".to_owned())]),
            &ids,
        )
        .unwrap();
    assert_eq!(View::of(&state).summary(), None, "another history");
}
