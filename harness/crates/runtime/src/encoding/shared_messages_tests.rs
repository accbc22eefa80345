//! Tests of frames that share messages.

use serde_json::json;

use super::*;
use crate::encoding::values_json;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::StateUpdate;

fn message(n: usize) -> Message {
    Message::human(format!("text {n}")).with(|body| body.id = Some(format!("m{n}")))
}

/// Returns the frame of a state and the number of bytes that it adds to memory.
fn frame(shared: &mut SharedMessages, state: &ThreadState) -> usize {
    let questions = [json!({ "value": 1, "id": "q" })];
    let with_questions = shared.values(state, &questions);
    let expected = values_json(state, &questions);
    assert_eq!(with_questions.into_bytes(), expected);
    let data = shared.values(state, &[]);
    let own = data.own_len();
    assert_eq!(data.into_bytes(), values_json(state, &[]));
    own
}

#[test]
fn frames_equal_the_json_of_their_states() {
    let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
    let ids = SeededIds::new(1);
    frame(&mut shared, &state);
    let updates = [
        StateUpdate::messages([message(1)]),
        StateUpdate::messages((2..60).map(message)),
        StateUpdate::messages([message(60)]).and("title", json!("T")),
        StateUpdate::messages([Message::remove("m60")]),
        StateUpdate::messages([message(3).with(|body| body.content = "other".into())]),
        StateUpdate::messages((61..200).map(message)),
        StateUpdate::messages((100..200).map(|n| Message::remove(format!("m{n}")))),
    ];
    for update in updates {
        state.apply(update, &ids).unwrap();
        frame(&mut shared, &state);
    }
}

#[test]
fn frame_of_an_unchanged_state_is_not_repeated() {
    let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
    let ids = SeededIds::new(1);
    let mut is_sent = |state: &ThreadState, questions: &[Value]| {
        shared.changed_values(state, questions).is_some()
    };
    assert!(is_sent(&state, &[]));
    let update = StateUpdate::messages((0..3).map(message));
    state.apply(update, &ids).unwrap();
    assert!(is_sent(&state, &[]));
    assert!(!is_sent(&state.clone(), &[]));
    assert!(is_sent(&state, &[json!({ "value": 1, "id": "q" })]));
    assert!(is_sent(&state, &[]));
    state
        .apply(StateUpdate::default().and("title", json!("T")), &ids)
        .unwrap();
    assert!(is_sent(&state, &[]));
}

#[test]
fn sent_messages_are_those_of_the_last_frame() {
    let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
    let ids = SeededIds::new(1);
    let mut expect = |update: StateUpdate, is_sent: bool| {
        state.apply(update, &ids).unwrap();
        assert_eq!(shared.sent_messages_of(&state), is_sent);
        shared.changed_values(&state, &[]);
        assert!(shared.sent_messages_of(&state));
    };
    expect(StateUpdate::messages((0..9).map(message)), false);
    expect(StateUpdate::messages([message(9)]), false);
    expect(StateUpdate::messages([message(9)]), true);
    expect(StateUpdate::default().and("title", json!("T")), true);
    let changed = message(9).with(|body| body.content = "other".into());
    expect(StateUpdate::messages([changed]), false);
    expect(StateUpdate::messages([Message::remove("m9")]), false);
    expect(StateUpdate::messages([Message::remove("m3")]), false);
    let changed = message(4).with(|body| body.content = "other".into());
    state.apply(StateUpdate::messages([changed]), &ids).unwrap();
    assert!(!shared.sent_messages_of(&state));
    shared.set_sent(&state);
    assert!(shared.sent_messages_of(&state));
}

/// Returns a state of 500 messages after its first frame.
fn after_first_frame() -> (ThreadState, SharedMessages, SeededIds) {
    let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
    let ids = SeededIds::new(1);
    let many = StateUpdate::messages((0..500).map(message));
    state.apply(many, &ids).unwrap();
    frame(&mut shared, &state);
    (state, shared, ids)
}

#[test]
fn frame_of_one_more_message_adds_only_its_bytes() {
    let (mut state, mut shared, ids) = after_first_frame();
    let one = StateUpdate::messages([message(500)]);
    state.apply(one, &ids).unwrap();
    assert!(frame(&mut shared, &state) < 1_000);
}

#[test]
fn frames_share_large_messages_with_the_state() {
    let (mut state, mut shared) = (ThreadState::default(), SharedMessages::default());
    let ids = SeededIds::new(1);
    let large = |n: usize| message(n).with(|body| body.content = "x".repeat(100_000).into());
    let messages = [message(1), large(2), large(3), message(4)];
    state.apply(StateUpdate::messages(messages), &ids).unwrap();
    frame(&mut shared, &state);
    let data = shared.changed_values(&state, &[]).expect("a frame");
    assert!(shared.changed_values(&state.clone(), &[]).is_none());
    for message in &state.messages()[1..3] {
        let json = message.json().get().as_ptr();
        assert!(data.pieces().any(|piece| piece.as_ptr() == json));
    }
    let more = StateUpdate::messages([large(5)]);
    state.apply(more, &ids).unwrap();
    assert!(shared.changed_values(&state, &[]).is_some());
    assert!(shared.changed_values(&state, &[]).is_none());
    frame(&mut shared, &state);
}

#[test]
fn frames_share_the_messages_before_a_completed_input() {
    let (mut state, mut shared, ids) = after_first_frame();
    let completed = message(499).with(|body| body.name = Some("ann".to_owned()));
    state.replace_last(completed);
    shared.replace_sent(&state);
    let answer = StateUpdate::messages([Message::ai("answer")]);
    state.apply(answer, &ids).unwrap();
    assert!(frame(&mut shared, &state) < 1_000);
}
