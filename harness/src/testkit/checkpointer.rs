//! What checkpointers promise.

use std::sync::Arc;

use serde_json::json;

use super::{
    RunStores, at_once, checkpoint, checkpoint_write, commit_of, end_in, message, new_run, object,
    run, thread,
};
use crate::ids::SeededIds;
use crate::messages::Message;
use crate::runtime::checkpoint::{
    CheckpointMeta, CheckpointSource, CheckpointWrite, HistoryQuery, NestedState, OutsideWrite,
    PendingTask, PutError,
};
use crate::runtime::runs::store::RunCommit;
use crate::runtime::runs::{RunStatus, ThreadStatus};
use crate::state::{StateUpdate, ThreadState};

/// One test per promise of checkpointers.
#[macro_export]
macro_rules! checkpointer_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::checkpoint_history]
            history_is_newest_first_and_starts_before_what_is_asked
            history_finds_by_metadata
            history_finds_by_any_metadata
            a_history_keeps_its_newest_and_what_those_follow
        }
        $crate::promises! { $attrs $open, [$crate::testkit::checkpointer]
            a_state_comes_back_as_it_was
            the_newest_is_given_unless_another_is_asked_for
            every_fact_comes_back
            snapshots_of_one_list_share_their_messages
            replaced_and_removed_messages_keep_older_checkpoints_as_they_were
            a_repeated_id_is_refused_as_a_whole
            an_amendment_changes_what_is_due_and_nothing_else
            deleting_a_run_leaves_the_log_and_other_runs
            a_log_without_checkpoints_still_knows_its_end
            a_deleted_thread_is_empty
            a_copy_lives_on_its_own
            a_long_conversation_is_read_whole
            a_change_from_outside_is_refused_while_a_run_holds_the_thread
            a_change_from_outside_is_refused_when_the_thread_has_moved
            of_changes_at_once_from_one_reading_exactly_one_is_written
            metadata_is_merged_into_the_newest_checkpoint_of_a_thread_at_rest
        }
    };
}

/// A thread's conversation as a test advances it.
pub(super) struct Talk<'a> {
    stores: &'a RunStores,
    on: &'a str,
    state: ThreadState,
    tail: u64,
    next: u64,
    ids: SeededIds,
}

impl<'a> Talk<'a> {
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

pub(super) fn says(id: &str) -> StateUpdate {
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

/// Messages in order with their places, channels, and how far the log goes.
pub async fn a_state_comes_back_as_it_was(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let mut talk = Talk::new(&stores, "t1");
    let update = StateUpdate::messages([
        message("m1", "\u{0} \u{2028} 😀"),
        Message::ai("answer").with(|body| body.id = Some("m2".to_owned())),
    ]);
    talk.step(
        None,
        update
            .and("title", json!("T"))
            .and("todos", json!([{"z": 1.0, "a": null}])),
    )
    .await;
    talk.step(None, says("m3")).await;
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(read.state, talk.state);
    assert_eq!(read.state.log_places(), [Some(1), Some(2), Some(3)]);
    assert_eq!(read.log_tail, 3);
    assert_eq!(
        serde_json::to_string(&read.state).ok(),
        serde_json::to_string(&talk.state).ok()
    );
}

/// By id, within the thread only.
pub async fn the_newest_is_given_unless_another_is_asked_for(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    for id in ["m1", "m2", "m3"] {
        talk.step(None, says(id)).await;
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

/// Due nodes with the agents inside of them, machine, metadata, parent.
pub async fn every_fact_comes_back(open: impl AsyncFn() -> RunStores) {
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

/// A long history costs its log once.
pub async fn snapshots_of_one_list_share_their_messages(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    for id in ["m1", "m2", "m3"] {
        talk.step(None, says(id)).await;
    }
    let list = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    let first = |n: usize| list[n].state.messages()[0].json().get().as_ptr();
    assert_eq!(first(0), first(2));
}

/// The log keeps what a later state no longer has.
pub async fn replaced_and_removed_messages_keep_older_checkpoints_as_they_were(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(
        None,
        StateUpdate::messages(["m1", "m2", "m3", "m4"].map(|id| message(id, "old"))),
    )
    .await;
    talk.step(
        None,
        StateUpdate::messages([message("m2", "new"), Message::remove("m3")]),
    )
    .await;
    let list = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    assert_eq!(list[0].state, talk.state);
    assert_eq!(list[0].state.log_places(), [Some(1), Some(5), Some(4)]);
    assert_eq!(ids(&list[1].state), ["m1", "m2", "m3", "m4"]);
    assert_eq!(list[1].state.messages()[1], message("m2", "old"));
}

/// Nothing of the second write is there, and the first is untouched.
pub async fn a_repeated_id_is_refused_as_a_whole(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(None, says("m1")).await;
    let before = talk.state.clone();
    let mut tail = talk.tail;
    talk.state.apply(says("m2"), &talk.ids).expect("applied");
    let again = checkpoint_write("t1", None, 1, &mut talk.state, &mut tail);
    assert!(stores.checkpoints.put(again).await.is_err());
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((read.state, read.log_tail), (before, 1));
}

/// A checkpoint that is not there cannot be amended.
pub async fn an_amendment_changes_what_is_due_and_nothing_else(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(None, says("m1")).await;
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
    let mut write = checkpoint_write("t1", None, 1, &mut talk.state, &mut talk.tail);
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
    let stranger = checkpoint_write("t1", None, 2, &mut talk.state, &mut talk.tail);
    assert!(
        stores
            .checkpoints
            .put(CheckpointWrite {
                amends: true,
                ..stranger
            })
            .await
            .is_err()
    );
}

/// Idempotent; places are never given twice.
pub async fn deleting_a_run_leaves_the_log_and_other_runs(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(Some("r1"), says("m1")).await;
    talk.step(Some("r2"), says("m2")).await;
    for _ in 0..2 {
        stores
            .checkpoints
            .delete_run(&thread("t1"), &run("r2"))
            .await
            .expect("deleted");
    }
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m1"], 2));
}

/// Who begins again after the only run was undone must not give its places a second time.
pub async fn a_log_without_checkpoints_still_knows_its_end(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(
        stores
            .checkpoints
            .log_tail(&thread("t1"))
            .await
            .expect("read"),
        0
    );
    Talk::new(&stores, "t1").step(Some("r1"), says("m1")).await;
    stores
        .checkpoints
        .delete_run(&thread("t1"), &run("r1"))
        .await
        .expect("deleted");
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let tail = stores
        .checkpoints
        .log_tail(&thread("t1"))
        .await
        .expect("read");
    assert_eq!(tail, 1);
    let mut talk = Talk {
        tail,
        ..Talk::new(&stores, "t1")
    };
    talk.step(Some("r2"), says("m2")).await;
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m2"], 2));
}

/// Idempotent; the thread can begin anew.
pub async fn a_deleted_thread_is_empty(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut other = Talk::new(&stores, "t2");
    other.step(None, says("m1")).await;
    Talk::new(&stores, "t1").step(None, says("m1")).await;
    for _ in 0..2 {
        stores
            .checkpoints
            .delete_thread(&thread("t1"))
            .await
            .expect("deleted");
    }
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    Talk::new(&stores, "t1").step(None, says("m1")).await;
    let read = stores
        .checkpoints
        .get(&thread("t2"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(read.state, other.state);
}

/// Both threads go on apart from each other.
pub async fn a_copy_lives_on_its_own(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(None, says("m1")).await;
    talk.step(None, says("m2")).await;
    stores
        .checkpoints
        .copy_thread(&thread("t1"), &thread("t2"))
        .await
        .expect("copied");
    talk.step(None, says("m3")).await;
    stores
        .checkpoints
        .delete_thread(&thread("t1"))
        .await
        .expect("deleted");
    let copy = stores
        .checkpoints
        .list(&thread("t2"), &all())
        .await
        .expect("read");
    assert_eq!(
        copy.iter()
            .map(|read| read.meta.thread_id.as_str())
            .collect::<Vec<_>>(),
        ["t2", "t2"]
    );
    assert_eq!(
        (ids(&copy[0].state), ids(&copy[1].state), copy[0].log_tail),
        (vec!["m1", "m2"], vec!["m1"], 2)
    );
}

/// More messages than one statement takes, in ranges with gaps.
pub async fn a_long_conversation_is_read_whole(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut talk = Talk::new(&stores, "t1");
    talk.step(
        None,
        StateUpdate::messages((0..1_200).map(|n| message(&format!("m{n}"), "x"))),
    )
    .await;
    talk.step(
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
    assert_eq!(read.state, talk.state);
}

/// A change that says `text`, planned on the state after checkpoint `newest`, whose log ends at `log_tail`.
fn outside(n: u64, newest: Option<u64>, log_tail: u64, text: &str) -> OutsideWrite {
    let (mut state, mut tail) = (ThreadState::default(), log_tail);
    state
        .apply(says(text), &SeededIds::new(n))
        .expect("applied");
    let write = checkpoint_write("t1", None, n, &mut state, &mut tail);
    OutsideWrite {
        write,
        newest: newest.map(checkpoint),
        log_tail,
        title: None,
        status: ThreadStatus::Idle,
    }
}

/// A thread with a row, on which nothing runs.
async fn thread_at_rest(stores: &RunStores) {
    let record = stores
        .create
        .admit(new_run("r0", "t1"))
        .await
        .expect("admitted")
        .run;
    let end = Some(end_in(RunStatus::Interrupted));
    stores
        .commit
        .commit(RunCommit {
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
}

/// The run writes from where it began; after it, the same change is taken.
pub async fn a_change_from_outside_is_refused_while_a_run_holds_the_thread(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let put = async || {
        stores
            .checkpoints
            .put_outside_run(outside(1, None, 0, "m1"))
            .await
    };
    assert!(matches!(put().await, Err(PutError::NoThread(_))));
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    assert!(matches!(put().await, Err(PutError::Busy { run_id, .. }) if run_id == run("r1")));
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let end = Some(end_in(RunStatus::Interrupted));
    stores
        .commit
        .commit(RunCommit {
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    put().await.expect("written");
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m1"], 1));
}

/// By a checkpoint, or by messages of a run that was undone.
pub async fn a_change_from_outside_is_refused_when_the_thread_has_moved(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    thread_at_rest(&stores).await;
    stores
        .checkpoints
        .put_outside_run(outside(1, None, 0, "m1"))
        .await
        .expect("written");
    for (newest, tail) in [(None, 0), (None, 1), (Some(1), 0), (Some(9), 1)] {
        let put = stores
            .checkpoints
            .put_outside_run(outside(2, newest, tail, "m2"))
            .await;
        assert!(
            matches!(put, Err(PutError::Moved(_))),
            "planned on {newest:?} and {tail}"
        );
    }
    stores
        .checkpoints
        .put_outside_run(outside(2, Some(1), 1, "m2"))
        .await
        .expect("written");
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m2"], 2));
}

/// The others learn that they must read again; none fails.
pub async fn of_changes_at_once_from_one_reading_exactly_one_is_written(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    thread_at_rest(&stores).await;
    let results = at_once((1..=20).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .checkpoints
                .put_outside_run(outside(n, None, 0, &format!("m{n}")))
                .await
        }
    }))
    .await;
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "{results:?}"
    );
    assert_eq!(
        results
            .iter()
            .filter(|result| matches!(result, Err(PutError::Moved(_))))
            .count(),
        19,
        "{results:?}"
    );
}

/// One level deep, and nothing else of it changes.
pub async fn metadata_is_merged_into_the_newest_checkpoint_of_a_thread_at_rest(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let patch = async |entries: serde_json::Value| {
        stores
            .checkpoints
            .patch_metadata(&thread("t1"), object(entries))
            .await
    };
    assert!(matches!(
        patch(json!({ "a": 1 })).await,
        Err(PutError::NoThread(_))
    ));
    thread_at_rest(&stores).await;
    assert!(!patch(json!({ "a": 1 })).await.expect("nothing to change"));
    let mut talk = Talk::new(&stores, "t1");
    talk.step(None, says("m1")).await;
    talk.step(None, says("m2")).await;
    let before = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    assert!(
        patch(json!({ "a": { "b": 1 }, "c": 1 }))
            .await
            .expect("changed")
    );
    assert!(patch(json!({ "a": { "d": null } })).await.expect("changed"));
    let after = stores
        .checkpoints
        .list(&thread("t1"), &all())
        .await
        .expect("read");
    let mut wanted = before[0].meta.clone();
    wanted
        .metadata
        .extend(object(json!({ "a": { "d": null }, "c": 1 })));
    assert_eq!(
        (&after[0].meta, &after[0].state),
        (&wanted, &before[0].state)
    );
    assert_eq!(after[1].meta, before[1].meta);
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    assert!(
        matches!(patch(json!({ "c": 2 })).await, Err(PutError::Busy { run_id, .. }) if run_id == record.run_id)
    );
}
