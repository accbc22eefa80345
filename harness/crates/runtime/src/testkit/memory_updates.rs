//! Contract of run stores whose commits register pending updates of user memories.

use std::sync::Arc;

use super::{RunStores, at, commit_of, end_in, memory_update, new_run, on_temporary_thread};
use crate::runs::RunStatus;
use crate::runs::store::{NewRun, RunCommit, RunEnd, WebhookCall};
use crate::user_memory::{MemoryScope, PendingUpdate, UserMemoryStore};

/// Generates one test per guarantee of such stores.
#[macro_export]
macro_rules! memory_update_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::memory_updates]
            memory_update_of_a_commit_is_registered_once
            later_memory_update_of_a_thread_replaces_due_time
            refused_commit_registers_no_memory_update
            end_of_temporary_thread_registers_no_memory_update
        }
    };
}

/// Stores of runs and of user memories over one database, opened fresh for one test.
#[derive(Debug, Clone)]
pub struct MemoryUpdateStores {
    /// Stores of runs.
    pub runs: RunStores,
    /// Store of user memories.
    pub memories: Arc<dyn UserMemoryStore>,
}

/// Returns a commit of a new run with an update that is due at `at(due)`.
async fn commit_of_new(stores: &MemoryUpdateStores, new: NewRun, due: i64) -> RunCommit {
    let record = stores.runs.create.admit(new).await.expect("admitted").run;
    RunCommit {
        batch: 1,
        memory_update: Some(memory_update(due)),
        ..commit_of(&record)
    }
}

fn ended(commit: RunCommit, webhook: Option<WebhookCall>) -> RunCommit {
    let end = RunEnd {
        webhook,
        ..end_in(RunStatus::Error)
    };
    RunCommit {
        end: Some(end),
        ..commit
    }
}

/// Claims the updates that are due, in the order of their due times.
async fn due(stores: &MemoryUpdateStores, now: i64) -> Vec<PendingUpdate> {
    let claimed = stores.memories.take(at(now), at(200), 9).await;
    claimed.expect("claimed")
}

/// Progress, ends, ends with a webhook and releases register the update of their commit. A repeated
/// commit registers no second one.
pub async fn memory_update_of_a_commit_is_registered_once(
    open: impl AsyncFn() -> MemoryUpdateStores,
) {
    let stores = open().await;
    let webhook = WebhookCall {
        url: "http://h.test".to_owned(),
        started_at: at(2),
        values: None,
        error: None,
    };
    for due in 1..=4 {
        let new = new_run(&format!("r{due}"), &format!("t{due}"));
        let commit = commit_of_new(&stores, new, due).await;
        let (commit, times) = match due {
            1 => (commit, 2),
            2 => (ended(commit, None), 2),
            3 => (ended(commit, Some(webhook.clone())), 2),
            _ => (commit.releasing(), 1),
        };
        let commit = Arc::new(commit);
        for _ in 0..times {
            let committed = stores.runs.commit.commit(commit.clone()).await;
            committed.expect("committed");
        }
    }
    let registered: Vec<_> = due(&stores, 100)
        .await
        .into_iter()
        .map(|update| (update.thread.to_string(), update.scope, update.number))
        .collect();
    let of = |thread: i64| (format!("t{thread}"), MemoryScope::of_user("ann"), 1);
    assert_eq!(registered, [of(1), of(2), of(3), of(4)]);
}

/// The update of a thread is due at its last due time, is counted, and has no failed attempts.
pub async fn later_memory_update_of_a_thread_replaces_due_time(
    open: impl AsyncFn() -> MemoryUpdateStores,
) {
    let stores = open().await;
    let first = commit_of_new(&stores, new_run("r1", "t1"), 1).await;
    let committed = stores.runs.commit.commit(first.clone().into()).await;
    committed.expect("committed");
    let failed = due(&stores, 1).await.remove(0);
    stores.memories.again(&failed, at(2)).await.expect("stored");
    let second = RunCommit {
        batch: 2,
        memory_update: Some(memory_update(50)),
        ..first
    };
    let committed = stores.runs.commit.commit(ended(second, None).into()).await;
    committed.expect("committed");
    assert_eq!(due(&stores, 49).await, []);
    let updates = due(&stores, 50).await;
    let [update] = updates.as_slice() else {
        panic!("{updates:?}")
    };
    assert_eq!((update.number, update.tries), (2, 0));
}

/// A commit of another attempt than the owner's changes no memory.
pub async fn refused_commit_registers_no_memory_update(open: impl AsyncFn() -> MemoryUpdateStores) {
    let stores = open().await;
    let commit = commit_of_new(&stores, new_run("r1", "t1"), 1).await;
    let foreign = RunCommit {
        attempt: commit.attempt + 1,
        ..commit
    };
    for commit in [foreign.clone(), ended(foreign, None)] {
        let refused = stores.runs.commit.commit(commit.into()).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(due(&stores, 100).await, []);
}

/// The thread is deleted with the end.
pub async fn end_of_temporary_thread_registers_no_memory_update(
    open: impl AsyncFn() -> MemoryUpdateStores,
) {
    let stores = open().await;
    let new = on_temporary_thread(new_run("r1", "t1"));
    let commit = commit_of_new(&stores, new, 1).await;
    let committed = stores.runs.commit.commit(ended(commit, None).into()).await;
    committed.expect("committed");
    assert_eq!(due(&stores, 100).await, []);
}
