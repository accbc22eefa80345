//! Contract of run stores whose commits register pending updates of user memories.

use std::sync::Arc;

use super::{RunStores, at, commit_of, end_in, new_run};
use crate::runs::RunStatus;
use crate::runs::store::{RunCommit, RunEnd, WebhookCall};
use crate::user_memory::{MemoryScope, MemoryUpdate, UserMemoryStore};

/// Generates one test per guarantee of such stores.
#[macro_export]
macro_rules! memory_update_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::memory_updates]
            memory_update_of_a_commit_is_registered_once
            refused_commit_registers_no_memory_update
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

fn update(due: i64) -> Option<Box<MemoryUpdate>> {
    Some(Box::new(MemoryUpdate {
        scope: MemoryScope::of_user("ann"),
        due: at(due),
    }))
}

/// Returns the threads of the pending updates in the order of their due times, and the number of
/// each update.
async fn pending(stores: &MemoryUpdateStores) -> Vec<(String, i64)> {
    let claimed = stores.memories.take(at(100), at(200), 9).await;
    let claimed = claimed.expect("claimed").into_iter();
    claimed
        .map(|update| (update.thread.to_string(), update.number))
        .collect()
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
    let call = |webhook| RunEnd {
        webhook,
        ..end_in(RunStatus::Error)
    };
    let kinds: [fn(RunCommit, RunEnd) -> RunCommit; 3] = [
        |commit, _| commit,
        |commit, end| RunCommit {
            end: Some(end),
            ..commit
        },
        |commit, _| commit.releasing(),
    ];
    let mut due = 0;
    for kind in kinds {
        for webhook in [None, Some(webhook.clone())] {
            due += 1;
            let new = new_run(&format!("r{due}"), &format!("t{due}"));
            let record = stores.runs.create.admit(new).await.expect("admitted").run;
            let commit = RunCommit {
                batch: 1,
                memory_update: update(due),
                ..commit_of(&record)
            };
            let commit = Arc::new(kind(commit, call(webhook)));
            let times = if commit.advance.is_none() { 2 } else { 1 };
            for _ in 0..times {
                let committed = stores.runs.commit.commit(commit.clone()).await;
                committed.expect("committed");
            }
        }
    }
    let expected: Vec<_> = (1..=6).map(|due| (format!("t{due}"), 1)).collect();
    assert_eq!(pending(&stores).await, expected);
}

/// A commit of another attempt than the owner's changes no memory.
pub async fn refused_commit_registers_no_memory_update(open: impl AsyncFn() -> MemoryUpdateStores) {
    let stores = open().await;
    let new = new_run("r1", "t1");
    let record = stores.runs.create.admit(new).await.expect("admitted").run;
    for end in [None, Some(end_in(RunStatus::Success))] {
        let commit = RunCommit {
            attempt: record.attempt + 1,
            memory_update: update(1),
            end,
            ..commit_of(&record)
        };
        let refused = stores.runs.commit.commit(commit.into()).await;
        assert!(refused.is_err(), "{refused:?}");
    }
    assert_eq!(pending(&stores).await, []);
}
