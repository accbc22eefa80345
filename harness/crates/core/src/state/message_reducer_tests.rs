//! Compares the planned reduction with a naive one, and checks that long lists are reduced in
//! linear time.

use indexmap::IndexMap;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ids::SeededIds;
use crate::state::{StateUpdate, ThreadState};

fn human(id: &str, text: &str) -> Message {
    Message::human(text).with(|body| body.id = Some(id.to_owned()))
}

/// Reduces one message after the other, without an index.
fn reduced_naively(
    mut existing: Vec<Message>,
    incoming: &[Message],
) -> Result<Vec<Message>, StateError> {
    let after_clear = incoming
        .iter()
        .rposition(is_remove_all)
        .map_or(0, |at| at + 1);
    if after_clear > 0 {
        existing.clear();
    }
    let mut removed: Vec<&Message> = Vec::new();
    for message in &incoming[after_clear..] {
        let at = existing
            .iter()
            .position(|existing| existing.id == message.id);
        match (&message.kind, at) {
            (MessageKind::Remove, None) => {
                return Err(StateError::UnknownMessage(message.id.clone().unwrap()));
            }
            (MessageKind::Remove, Some(_)) => removed.push(message),
            (_, at) => {
                removed.retain(|removed| removed.id != message.id);
                match at {
                    Some(at) => existing[at] = message.clone(),
                    None => existing.push(message.clone()),
                }
            }
        }
    }
    existing.retain(|existing| !removed.iter().any(|removed| removed.id == existing.id));
    Ok(existing)
}

fn incoming() -> impl Strategy<Value = Vec<Message>> {
    let message = prop_oneof![
        6 => (0..12_u8, 0..3_u8).prop_map(|(id, text)| human(&id.to_string(), &text.to_string())),
        3 => (0..12_u8).prop_map(|id| Message::remove(id.to_string())),
        1 => Just(Message::remove(REMOVE_ALL)),
    ];
    proptest::collection::vec(message, 0..12)
}

proptest! {
    #[test]
    fn plan_matches_naive_reduction(existing in proptest::collection::btree_set(0..12_u8, 0..12), incoming in incoming()) {
        let existing: Vec<Message> = existing.iter().map(|id| human(&id.to_string(), "0")).collect();
        let mut state = ThreadState::restored((1..).zip(existing.iter().cloned()), IndexMap::new());
        let applied = state.apply(StateUpdate::messages(incoming.clone()), &SeededIds::new(1));
        match reduced_naively(existing.clone(), &incoming) {
            Ok(expected) => {
                prop_assert_eq!(applied, Ok(()));
                prop_assert_eq!(state.messages(), expected);
            }
            Err(error) => {
                prop_assert_eq!(applied, Err(error));
                prop_assert_eq!(state.messages(), &existing[..]);
            }
        }
        for (message, position) in state.messages().iter().zip(state.log_places()) {
            let stored = position.map(|position| &existing[usize::try_from(position).unwrap() - 1]);
            prop_assert!(stored.is_none_or(|stored| stored == message));
        }
    }
}

/// Takes minutes if each message is searched linearly.
#[test]
fn long_lists_reduce_in_linear_time() {
    let count = 200_000;
    let ids = SeededIds::new(1);
    let named = |text: &str| {
        (0..count)
            .map(|n| human(&n.to_string(), text))
            .collect::<Vec<_>>()
    };
    let mut state = ThreadState::default();
    state
        .apply(StateUpdate::messages(named("one")), &ids)
        .unwrap();
    state
        .apply(StateUpdate::messages(named("two")), &ids)
        .unwrap();
    let places: Vec<_> = (0..count).zip(1..).collect();
    state.add_log_places(&places);
    let earlier = state.clone();
    let every_second = (0..count)
        .step_by(2)
        .map(|n| Message::remove(n.to_string()));
    state
        .apply(StateUpdate::messages(every_second), &ids)
        .unwrap();
    let mut copy = ThreadState::default();
    copy.apply(StateUpdate::messages(state.messages().to_vec()), &ids)
        .unwrap();
    copy.keep_log_places(&earlier);
    assert_eq!(
        (copy.messages().len(), copy.log_places().last()),
        (count / 2, Some(&Some(200_000)))
    );
    let answers = (0..count)
        .map(|n| StateUpdate::messages([human(&format!("answer {n}"), "three")]))
        .collect();
    copy.apply_parallel(answers, &ids).unwrap();
    assert_eq!(copy.messages().len(), count / 2 + count);
    let artifacts: Vec<String> = (0..count)
        .map(|n| format!("/mnt/user-data/outputs/{n}"))
        .collect();
    state
        .apply(StateUpdate::channel("artifacts", json!(artifacts)), &ids)
        .unwrap();
    state
        .apply(StateUpdate::channel("artifacts", json!(artifacts)), &ids)
        .unwrap();
    assert_eq!(
        state.channel("artifacts").unwrap().as_array().map(Vec::len),
        Some(count)
    );
}
