//! Reduction of messages and channels into a state.

use serde_json::json;

use super::*;
use crate::ids::SeededIds;
use crate::messages::REMOVE_ALL;

fn human(id: &str, text: &str) -> Message {
    Message::human(text).with(|body| body.id = Some(id.to_owned()))
}

fn stored(messages: &[Message]) -> ThreadState {
    ThreadState::restored((1..).zip(messages.iter().cloned()), IndexMap::new())
}

fn texts(state: &ThreadState) -> Vec<String> {
    state
        .messages()
        .iter()
        .map(|message| {
            format!(
                "{}={}",
                message.id.as_deref().unwrap_or("?"),
                message.content.text()
            )
        })
        .collect()
}

fn apply(state: &mut ThreadState, update: StateUpdate) -> Result<(), StateError> {
    state.apply(update, &SeededIds::new(1))
}

#[test]
fn messages_append_replace_by_id_and_are_removed() {
    let mut state = stored(&[human("a", "1"), human("b", "2")]);
    apply(
        &mut state,
        StateUpdate::messages([human("a", "one"), human("c", "3")]),
    )
    .unwrap();
    assert_eq!(texts(&state), ["a=one", "b=2", "c=3"]);
    assert_eq!(state.log_places(), [None, Some(2), None]);
    apply(
        &mut state,
        StateUpdate::messages([
            Message::remove("b"),
            Message::remove("c"),
            human("c", "again"),
        ]),
    )
    .unwrap();
    assert_eq!(texts(&state), ["a=one", "c=again"]);
    let before = state.clone();
    assert_eq!(
        apply(&mut state, StateUpdate::messages([Message::remove("x")])),
        Err(StateError::UnknownMessage("x".to_owned()))
    );
    assert_eq!(state, before);
    apply(
        &mut state,
        StateUpdate::messages([
            human("d", "lost"),
            Message::remove(REMOVE_ALL),
            human("e", "kept"),
        ]),
    )
    .unwrap();
    assert_eq!(texts(&state), ["e=kept"]);
}

#[test]
fn each_channel_follows_its_own_rule() {
    let mut state = ThreadState::default();
    for (channel, write, held) in [
        ("artifacts", json!(["a", "b"]), json!(["a", "b"])),
        ("artifacts", json!(["b", "c", "c"]), json!(["a", "b", "c"])),
        ("artifacts", json!(null), json!(["a", "b", "c"])),
        ("viewed_images", json!({"p": 1}), json!({"p": 1})),
        ("viewed_images", json!({"q": 2}), json!({"p": 1, "q": 2})),
        ("viewed_images", json!({}), json!({})),
        ("todos", json!([1]), json!([1])),
        ("todos", json!(null), json!([1])),
        ("todos", json!([]), json!([])),
        (
            "sandbox",
            json!({"sandbox_id": "s"}),
            json!({"sandbox_id": "s"}),
        ),
        ("sandbox", json!(null), json!({"sandbox_id": "s"})),
        ("title", json!("t"), json!("t")),
    ] {
        apply(&mut state, StateUpdate::channel(channel, write.clone())).unwrap();
        assert_eq!(
            state.channel(channel),
            Some(&held),
            "{channel} after {write}"
        );
    }
    let other = StateUpdate::channel("sandbox", json!({"sandbox_id": "t"}));
    assert!(matches!(
        apply(&mut state, other),
        Err(StateError::SandboxConflict { .. })
    ));
    assert!(matches!(
        apply(&mut state, StateUpdate::channel("x", json!(1))),
        Err(StateError::UnknownChannel(_))
    ));
}

#[test]
fn copy_takes_over_log_positions_stored_meanwhile() {
    let saved = stored(&[human("a", "1"), human("b", "2")]);
    let mut copy = ThreadState::default();
    apply(
        &mut copy,
        StateUpdate::messages([human("a", "1"), human("b", "changed"), human("c", "3")]),
    )
    .unwrap();
    copy.keep_log_places(&saved);
    assert_eq!(copy.log_places(), [Some(1), None, None]);
    apply(
        &mut copy,
        StateUpdate::messages([Message::remove("a"), human("b", "2")]),
    )
    .unwrap();
    copy.keep_log_places(&saved);
    assert_eq!(copy.log_places(), [Some(2), None]);
}
