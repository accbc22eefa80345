//! Plans of checkpoint writes and ranges of the log.

use super::*;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::StateUpdate;
use proptest::prelude::*;

proptest! {
    #[test]
    fn layout_expands_to_its_positions(positions in proptest::collection::vec(0_u64..50, 0..60)) {
        prop_assert_eq!(expand(&layout_of(positions.iter().copied())).collect::<Vec<_>>(), positions);
    }
}

fn meta() -> CheckpointMeta {
    CheckpointMeta {
        checkpoint_id: CheckpointId::parse("c1").unwrap(),
        thread_id: ThreadId::parse("t").unwrap(),
        parent_id: None,
        run_id: None,
        source: CheckpointSource::Loop,
        step: 1,
        next: vec![],
        machine: None,
        metadata: Map::new(),
        created_at: DateTime::UNIX_EPOCH,
    }
}

/// Creates a state whose messages are at every `step`th position of the log.
fn at_every(step: u64, count: u64) -> ThreadState {
    ThreadState::restored(
        (0..count).map(|n| (1 + step * n, Message::human(n.to_string()))),
        Default::default(),
    )
}

#[test]
fn a_fragmented_log_is_compacted_by_the_next_write() {
    let mut state = at_every(2, 200);
    let mut log_tail = 400;
    let write = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
    assert_eq!(
        (write.layout, write.new_messages.len(), log_tail),
        (vec![LogRange(401, 600)], 200, 600)
    );
    let again = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
    assert_eq!(
        (again.layout, again.new_messages.len(), log_tail),
        (vec![LogRange(401, 600)], 0, 600)
    );
}

#[test]
fn few_fragments_are_not_compacted() {
    let mut state = at_every(2, 70);
    let write = CheckpointWrite::plan(meta(), &mut state, &mut 140);
    assert_eq!((write.layout.len(), write.new_messages.len()), (70, 0));
}

#[test]
fn histories_follow_the_conversation_and_are_written_once() {
    let mut state = at_every(1, 2);
    state
        .histories_mut()
        .push("a", ["q", "r"].map(Message::human), 9);
    let mut log_tail = 2;
    let first = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
    assert_eq!(first.layout, [LogRange(1, 2), LogRange(3, 4)]);
    state.histories_mut().push("a", [Message::human("s")], 2);
    state.histories_mut().push("b", [Message::human("t")], 2);
    let second = CheckpointWrite::plan(meta(), &mut state, &mut log_tail);
    assert_eq!(second.layout, [LogRange(1, 2), LogRange(4, 6)]);
    assert_eq!((second.new_messages.len(), log_tail), (2, 6));
    let stored = serde_json::to_string(&second.stored_channels()).expect("valid");
    let mut channels = serde_json::from_str(&stored).expect("valid");
    let conversation = conversation_of(vec![LogRange(1, 6)], &mut channels);
    assert_eq!(conversation, [LogRange(1, 3)]);
    assert!(channels.is_empty());
}

#[test]
fn an_append_only_conversation_is_one_range() {
    let positions: Vec<u64> = (1..=4_000).collect();
    assert_eq!(layout_of(positions), vec![LogRange(1, 4_000)]);
}

/// Plans a write of one message.
fn write_of(id: &str, parent: &str, amends: bool) -> CheckpointWrite {
    let meta = CheckpointMeta {
        checkpoint_id: CheckpointId::parse(id).unwrap(),
        parent_id: Some(CheckpointId::parse(parent).unwrap()),
        ..meta()
    };
    let mut state = ThreadState::default();
    let update = StateUpdate::messages([Message::human(id)]);
    state.apply(update, &SeededIds::new(1)).unwrap();
    CheckpointWrite {
        amends,
        ..CheckpointWrite::plan(meta, &mut state, &mut 0)
    }
}

#[test]
fn replacement_is_a_child_of_what_is_stored() {
    // (the replaced write amends a stored checkpoint, the id of the replacement, amends, parent)
    for (is_stored, id, amends, parent) in [
        (false, "c1", false, "c0"),
        (true, "c1", true, "c0"),
        (false, "c2", false, "c0"),
        (true, "c2", false, "c1"),
    ] {
        let is_same = id == "c1";
        let later = write_of(id, if is_same { "c0" } else { "c1" }, is_same);
        let merged = later.instead_of(write_of("c1", "c0", is_stored));
        assert_eq!(merged.amends, amends, "{is_stored} {id}");
        assert_eq!(merged.meta.parent_id.unwrap().as_str(), parent);
        assert_eq!(merged.new_messages.len(), 2);
    }
}
