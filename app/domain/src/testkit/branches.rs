//! Contract of [`BranchStore`](crate::branches::BranchStore).

use deerflow_core::actor_context::Owner;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::checkpoint::{CheckpointWrite, HistoryQuery, PendingTask, Snapshot};
use deerflow_runtime::testkit::{
    USER, all_events, at, checkpoint, checkpoint_write, event, message, object, thread,
};
use serde_json::json;

use super::{ThreadStores, get, make, new_thread};
use crate::branches::NewBranch;
use crate::threads::{Deleted, NewThread};

/// Generates one test per requirement of branch stores.
#[macro_export]
macro_rules! branch_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::branches]
            branch_has_its_checkpoint_with_ancestors_and_no_later_messages
            branch_continues_independently_of_its_original
            branch_of_missing_original_creates_nothing
            refused_branch_creates_nothing
        }
    };
}

/// Writes a line of three checkpoints with one message each, and a sibling of the third.
async fn original(stores: &ThreadStores) {
    make(stores, new_thread("t1", json!({}))).await;
    let (mut state, mut tail, ids) = (ThreadState::default(), 0, SeededIds::new(3));
    let mut put = async |n: u64, parent: Option<u64>, state: &mut ThreadState| {
        let text = StateUpdate::messages([message(&format!("m{n}"), "text")]);
        let text = text.and("sandbox", json!({ "sandbox_id": "s1" }));
        state
            .apply(text.and("title", json!("Old")), &ids)
            .expect("applied");
        let mut write: CheckpointWrite = checkpoint_write("t1", Some("r1"), n, state, &mut tail);
        write.meta.parent_id = parent.map(checkpoint);
        write.meta.next = vec![PendingTask::new("task", "tools")];
        stores.runs.checkpoints.put(write).await.expect("written");
    };
    put(1, None, &mut state).await;
    put(2, Some(1), &mut state).await;
    let mut sibling = state.clone();
    put(3, Some(2), &mut state).await;
    put(4, Some(2), &mut sibling).await;
    put(5, Some(3), &mut state).await;
}

fn branch_at(n: u64) -> NewBranch {
    let mut first = event("t2", "branch-seed-t2-0", "text");
    first.user_id = Some(USER.to_owned());
    NewBranch {
        thread: NewThread {
            assistant: Some("lead_agent".to_owned()),
            assistant_id: Some("mine".to_owned()),
            at: at(9),
            ..new_thread("t2", json!({ "deerflow_branch": true }))
        },
        title: Some("New".to_owned()),
        original: thread("t1"),
        checkpoint: checkpoint(n),
        metadata: object(json!({ "branch": 1 })),
        events: vec![first.clone(), first],
    }
}

async fn states(stores: &ThreadStores, on: &str) -> Vec<Snapshot> {
    let all = stores
        .runs
        .checkpoints
        .list(&thread(on), &HistoryQuery::default())
        .await;
    all.expect("read")
}

fn ids(snapshot: &Snapshot) -> Vec<&str> {
    let messages = snapshot.state.messages().iter();
    messages
        .filter_map(|message| message.id.as_deref())
        .collect()
}

/// The line of the checkpoint is copied, with its log and nothing later. The newest state has the
/// new title and no pending tasks.
pub async fn branch_has_its_checkpoint_with_ancestors_and_no_later_messages(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    original(&stores).await;
    let record = stores
        .branches
        .branch(branch_at(3))
        .await
        .expect("created")
        .expect("there");
    assert_eq!(record, get(&stores, "t2").await);
    assert_eq!(
        (
            record.title.as_deref(),
            record.assistant.as_deref(),
            record.assistant_id.as_deref()
        ),
        (Some("New"), Some("lead_agent"), Some("mine"))
    );
    assert_eq!(record.metadata, object(json!({ "deerflow_branch": true })));
    let copied = states(&stores, "t2").await;
    let line: Vec<_> = copied
        .iter()
        .map(|state| state.meta.checkpoint_id.clone())
        .collect();
    assert_eq!(line, [3, 2, 1].map(checkpoint));
    assert_eq!(ids(&copied[0]), ["m1", "m2", "m3"]);
    assert_eq!(ids(&copied[1]), ["m1", "m2"]);
    assert_eq!(copied[0].log_tail, 3, "later messages are not copied");
    assert!(copied[0].meta.next.is_empty() && copied[0].meta.machine.is_none());
    assert_eq!(copied[0].meta.metadata.get("branch"), Some(&json!(1)));
    assert_eq!(copied[0].meta.metadata.get("n"), Some(&json!(3)));
    assert_eq!(copied[0].state.title(), Some("New"));
    assert_eq!(copied[0].state.channel("sandbox"), None);
    assert_eq!(copied[1].state.title(), Some("Old"));
    let owner = Owner::User(USER.to_owned());
    let listed = stores
        .runs
        .events
        .list(&thread("t2"), &all_events(), &owner)
        .await;
    let rows = listed.expect("read");
    let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    assert_eq!(seqs, [1, 2]);
}

/// A branch is written to, and remains when the original is deleted.
pub async fn branch_continues_independently_of_its_original(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    original(&stores).await;
    stores
        .branches
        .branch(branch_at(5))
        .await
        .expect("created")
        .expect("there");
    let newest = states(&stores, "t2").await.remove(0);
    let (mut state, mut tail) = (newest.state, newest.log_tail);
    let update = StateUpdate::messages([message("m6", "more")]);
    state.apply(update, &SeededIds::new(4)).expect("applied");
    let write = checkpoint_write("t2", None, 6, &mut state, &mut tail);
    stores.runs.checkpoints.put(write).await.expect("written");
    assert_eq!(states(&stores, "t1").await.len(), 5);
    let deleted = stores.threads.delete(&thread("t1"), &Owner::None).await;
    assert_eq!(deleted, Ok(Deleted::Removed));
    assert_eq!(
        ids(&states(&stores, "t2").await[0]),
        ["m1", "m2", "m3", "m5", "m6"]
    );
}

/// A missing thread, a missing checkpoint and a thread of another user have the same result.
pub async fn branch_of_missing_original_creates_nothing(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    original(&stores).await;
    let mut of_bob = branch_at(3);
    of_bob.thread.user_id = Some("bob".to_owned());
    let mut unknown = branch_at(3);
    unknown.original = thread("t0");
    for refused in [of_bob, unknown, branch_at(8)] {
        assert_eq!(stores.branches.branch(refused).await, Ok(None));
        assert_absent(&stores, "t2").await;
    }
}

/// A failure leaves no part of a branch.
pub async fn refused_branch_creates_nothing(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    original(&stores).await;
    make(&stores, new_thread("t2", json!({ "first": true }))).await;
    assert!(
        stores.branches.branch(branch_at(3)).await.is_err(),
        "the id is in use"
    );
    assert_eq!(
        get(&stores, "t2").await.metadata,
        object(json!({ "first": true }))
    );
    assert!(states(&stores, "t2").await.is_empty());
}

async fn assert_absent(stores: &ThreadStores, on: &str) {
    let row = stores.threads.get(&thread(on), &Owner::None).await;
    assert_eq!(row, Ok(None));
    assert!(states(stores, on).await.is_empty());
    let events = stores
        .runs
        .events
        .list(&thread(on), &all_events(), &Owner::None)
        .await;
    assert_eq!(events.expect("read"), []);
}
