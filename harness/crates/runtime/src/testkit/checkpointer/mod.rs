//! Contract of checkpointers.

mod external_updates;
mod histories;
mod lifecycle;
mod long_messages;

use std::sync::Arc;

use serde_json::json;

use super::{RunStores, checkpoint, checkpoint_write, message, thread};
use crate::checkpoint::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery, NestedState, PendingTask,
};
use deerflow_core::ids::SeededIds;
use deerflow_core::messages::Message;
use deerflow_core::state::{Channels, Reducer, StateUpdate, ThreadState};

pub use external_updates::{
    concurrent_external_updates_write_exactly_one,
    external_update_is_rejected_after_thread_changed,
    external_update_is_rejected_while_run_is_active, metadata_patch_beyond_limit_changes_nothing,
    metadata_patch_merges_into_newest_checkpoint,
};
pub use histories::histories_are_read_back_as_of_their_checkpoint;
pub use lifecycle::{
    a_deleted_thread_is_empty, deleting_a_run_leaves_the_log_and_other_runs,
    log_tail_survives_deletion_of_checkpoints, thread_copy_is_independent,
};
pub use long_messages::{long_messages_are_read_back, long_texts_of_a_commit_are_read_back};

/// Generates one test per guarantee of checkpointers.
#[macro_export]
macro_rules! checkpointer_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::checkpoint_history]
            history_is_newest_first_and_starts_before_cursor
            history_filters_by_metadata
            history_filters_by_any_json_metadata
            pruning_retains_newest_and_their_parents
        }
        $crate::promises! { $attrs $open, [$crate::testkit::checkpointer]
            stored_state_is_read_back_unchanged
            histories_are_read_back_as_of_their_checkpoint
            get_returns_newest_or_requested_checkpoint
            all_checkpoint_fields_are_read_back
            snapshots_of_one_list_share_their_messages
            message_changes_leave_older_checkpoints_unchanged
            duplicate_checkpoint_id_is_rejected_atomically
            amendment_changes_pending_tasks_only
            deleting_a_run_leaves_the_log_and_other_runs
            log_tail_survives_deletion_of_checkpoints
            a_deleted_thread_is_empty
            thread_copy_is_independent
            long_conversation_is_read_completely
            long_messages_are_read_back
            long_texts_of_a_commit_are_read_back
            external_update_is_rejected_while_run_is_active
            external_update_is_rejected_after_thread_changed
            concurrent_external_updates_write_exactly_one
            metadata_patch_merges_into_newest_checkpoint
            metadata_patch_beyond_limit_changes_nothing
        }
    };
}

/// Conversation of a thread, advanced step by step.
pub(super) struct ThreadScript<'a> {
    stores: &'a RunStores,
    on: &'a str,
    state: ThreadState,
    tail: u64,
    next: u64,
    ids: SeededIds,
}

impl<'a> ThreadScript<'a> {
    pub(super) fn new(stores: &'a RunStores, on: &'a str) -> Self {
        Self {
            stores,
            on,
            state: ThreadState::default(),
            tail: 0,
            next: 1,
            ids: SeededIds::new(3),
        }
    }

    pub(super) async fn step(&mut self, of: Option<&str>, update: StateUpdate) {
        self.state.apply(update, &self.ids).expect("applied");
        let write = checkpoint_write(self.on, of, self.next, &mut self.state, &mut self.tail);
        self.stores.checkpoints.put(write).await.expect("written");
        self.next += 1;
    }
}

pub(super) fn text_update(id: &str) -> StateUpdate {
    StateUpdate::messages([message(id, &format!("text of {id}"))])
}

fn all() -> HistoryQuery {
    HistoryQuery {
        limit: 100,
        ..HistoryQuery::default()
    }
}

fn ids(state: &ThreadState) -> Vec<&str> {
    state
        .messages()
        .iter()
        .filter_map(|message| message.id.as_deref())
        .collect()
}

pub(super) fn numbers(metas: &[CheckpointMeta]) -> Vec<i64> {
    metas.iter().map(|meta| meta.step).collect()
}

/// Messages are read back in order with their positions, with the channels, also those that the
/// lead agent does not have, and the end of the log.
pub async fn stored_state_is_read_back_unchanged(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let mut script = ThreadScript::new(&stores, "t1");
    let own = Channels::lead().with("ports", Reducer::MergeKeys);
    script.state = script.state.defined_by(own.expect("valid"));
    let update = StateUpdate::messages([
        message("m1", "\u{0} \u{2028} 😀"),
        Message::ai("answer").with(|body| body.id = Some("m2".to_owned())),
    ]);
    script
        .step(
            None,
            update
                .and("title", json!("T"))
                .and("ports", json!({"z": {"b": null}, "a": 1}))
                .and("todos", json!([{"z": 1.0, "a": null}])),
        )
        .await;
    script.step(None, text_update("m3")).await;
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(read.state, script.state);
    assert_eq!(read.state.log_places(), [Some(1), Some(2), Some(3)]);
    assert_eq!(read.log_tail, 3);
    assert_eq!(
        serde_json::to_string(&read.state).ok(),
        serde_json::to_string(&script.state).ok()
    );
}

/// A checkpoint is found by its id, within its thread only.
pub async fn get_returns_newest_or_requested_checkpoint(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    for id in ["m1", "m2", "m3"] {
        script.step(None, text_update(id)).await;
    }
    let get = async |on: &str, n: Option<u64>| {
        stores
            .checkpoints
            .get(&thread(on), n.map(checkpoint).as_ref())
            .await
            .expect("read")
    };
    assert_eq!(get("t1", None).await.map(|read| read.meta.step), Some(3));
    let first = get("t1", Some(1)).await.expect("there");
    assert_eq!((ids(&first.state), first.log_tail), (vec!["m1"], 3));
    assert!(get("t1", Some(9)).await.is_none());
    assert!(get("t2", Some(1)).await.is_none());
}

/// Pending tasks with nested agents, the state machine, the metadata and the parent are read back.
pub async fn all_checkpoint_fields_are_read_back(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let mut write = checkpoint_write("t1", Some("r1"), 7, &mut state, &mut tail);
    let inside = NestedState {
        checkpoint_id: checkpoint(3),
        parent_id: Some(checkpoint(2)),
        source: CheckpointSource::Loop,
        step: 1,
        next: vec![PendingTask::new("inner", "model")],
        machine: Some(json!({"at": "model"})),
        state: Arc::new(ThreadState::restored(
            [(1, message("n1", "\u{0} 😀"))],
            [("title".to_owned(), json!("T"))].into_iter().collect(),
        )),
        created_at: write.meta.created_at,
    };
    write.meta.next = vec![PendingTask {
        interrupts: vec![json!({"value": "sure?", "id": "i"})],
        error: Some("late".to_owned()),
        nested: Some(Arc::new(inside)),
        ..PendingTask::new("task", "tools")
    }];
    let mut bare = checkpoint_write("t1", None, 8, &mut state, &mut tail);
    bare.meta.machine = None;
    bare.meta.parent_id = None;
    for write in [&write, &bare] {
        stores
            .checkpoints
            .put(write.clone())
            .await
            .expect("written");
        let read = stores
            .checkpoints
            .get(&thread("t1"), Some(&write.meta.checkpoint_id))
            .await
            .expect("read")
            .expect("there");
        assert_eq!(read.meta, write.meta);
    }
    let metas = stores
        .checkpoints
        .list_meta(&thread("t1"), &all())
        .await
        .expect("read");
    assert_eq!(metas, [bare.meta, write.meta]);
}

/// The snapshots share the memory of common messages.
pub async fn snapshots_of_one_list_share_their_messages(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    for id in ["m1", "m2", "m3"] {
        script.step(None, text_update(id)).await;
    }
    let list = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    let first = |n: usize| list[n].state.messages()[0].json().get().as_ptr();
    assert_eq!(first(0), first(2));
}

/// The log retains messages that a later state no longer has.
pub async fn message_changes_leave_older_checkpoints_unchanged(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script
        .step(
            None,
            StateUpdate::messages(["m1", "m2", "m3", "m4"].map(|id| message(id, "old"))),
        )
        .await;
    script
        .step(
            None,
            StateUpdate::messages([message("m2", "new"), Message::remove("m3")]),
        )
        .await;
    let list = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    assert_eq!(list[0].state, script.state);
    assert_eq!(list[0].state.log_places(), [Some(1), Some(5), Some(4)]);
    assert_eq!(ids(&list[1].state), ["m1", "m2", "m3", "m4"]);
    assert_eq!(list[1].state.messages()[1], message("m2", "old"));
}

/// No part of the second write is stored, and the first one is unchanged.
pub async fn duplicate_checkpoint_id_is_rejected_atomically(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, text_update("m1")).await;
    let before = script.state.clone();
    let mut tail = script.tail;
    script
        .state
        .apply(text_update("m2"), &script.ids)
        .expect("applied");
    let again = checkpoint_write("t1", None, 1, &mut script.state, &mut tail);
    assert!(stores.checkpoints.put(again).await.is_err());
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((read.state, read.log_tail), (before, 1));
}

/// A missing checkpoint cannot be amended.
pub async fn amendment_changes_pending_tasks_only(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, text_update("m1")).await;
    let before = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    let task = PendingTask {
        error: Some("broken".to_owned()),
        ..PendingTask::new("a", "model")
    };
    let mut write = checkpoint_write("t1", None, 1, &mut script.state, &mut script.tail);
    write.meta.next = vec![task];
    write.amends = true;
    stores
        .checkpoints
        .put(write.clone())
        .await
        .expect("amended");
    let after = stores
        .checkpoints
        .list(
            &thread("t1"),
            &HistoryQuery {
                limit: 9,
                ..HistoryQuery::default()
            },
        )
        .await
        .expect("read");
    assert_eq!(after.len(), 1);
    assert_eq!(after[0].meta.next, write.meta.next);
    assert_eq!(
        (&after[0].state, after[0].meta.created_at),
        (&before.state, before.meta.created_at)
    );
    let unknown = checkpoint_write("t1", None, 2, &mut script.state, &mut script.tail);
    assert!(
        stores
            .checkpoints
            .put(CheckpointWrite {
                amends: true,
                ..unknown
            })
            .await
            .is_err()
    );
}

/// The conversation has more messages than one statement takes, in ranges with gaps.
pub async fn long_conversation_is_read_completely(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script
        .step(
            None,
            StateUpdate::messages((0..1_200).map(|n| message(&format!("m{n}"), "x"))),
        )
        .await;
    script
        .step(
            None,
            StateUpdate::messages(
                (0..1_200)
                    .step_by(5)
                    .map(|n| Message::remove(format!("m{n}"))),
            ),
        )
        .await;
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(read.state.messages().len(), 960);
    assert_eq!(read.state, script.state);
}
