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

fn own_channels() -> Channels {
    Channels::empty()
        .with("ports", Reducer::MergeKeys)
        .and_then(|channels| channels.with("result", Reducer::LastWrite))
        .unwrap()
}

#[test]
fn own_channels_are_reduced_by_their_definition() {
    let mut state = ThreadState::default().defined_by(own_channels());
    for (write, held) in [
        (json!({"a": 1, "b": 2}), Some(json!({"a": 1, "b": 2}))),
        (json!({"b": null, "c": 3}), Some(json!({"a": 1, "c": 3}))),
        (json!({}), Some(json!({"a": 1, "c": 3}))),
        (json!({"a": null, "c": null}), None),
        (json!({"d": 4}), Some(json!({"d": 4}))),
        (json!(null), None),
    ] {
        apply(&mut state, StateUpdate::channel("ports", write.clone())).unwrap();
        assert_eq!(state.channel("ports"), held.as_ref(), "after {write}");
    }
    assert!(matches!(
        apply(&mut state, StateUpdate::channel("ports", json!([1]))),
        Err(StateError::WrongShape { .. })
    ));
    assert_eq!(
        apply(&mut state, StateUpdate::channel("title", json!("T"))),
        Err(StateError::UnknownChannel("title".to_owned()))
    );
}

#[test]
fn parallel_writes_follow_the_definition() {
    let mut state = ThreadState::default().defined_by(own_channels());
    let ids = SeededIds::new(1);
    let write = |name: &str, value| StateUpdate::channel(name, value);
    let parts = vec![
        write("ports", json!({"a": 1})),
        write("ports", json!({"b": 2})),
    ];
    state.apply_parallel(parts, &ids).unwrap();
    assert_eq!(state.channel("ports"), Some(&json!({"a": 1, "b": 2})));
    let results = vec![write("result", json!(1)), write("result", json!(2))];
    assert_eq!(
        state.apply_parallel(results, &ids),
        Err(StateError::ParallelWrites("result".to_owned()))
    );
}

#[test]
fn state_survives_a_reader_without_the_definition() {
    let channels = own_channels().with("title", Reducer::LastWrite).unwrap();
    let mut state = ThreadState::default().defined_by(channels);
    let update = StateUpdate::channel("result", json!("r"))
        .and("ports", json!({"a": 1}))
        .and("title", json!("T"));
    apply(&mut state, update).unwrap();
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(
        text,
        r#"{"messages":[],"title":"T","ports":{"a":1},"result":"r"}"#
    );
    let mut read: ThreadState = serde_json::from_str(&text).unwrap();
    assert_eq!(read, state);
    apply(&mut read, StateUpdate::channel("title", json!("U"))).unwrap();
    assert_eq!(read.channel("result"), Some(&json!("r")));
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        text.replace("\"T\"", "\"U\"")
    );
}
