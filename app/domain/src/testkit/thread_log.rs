//! Contract suite of stores of thread logs.

use std::sync::Arc;

use deerflow_core::actor_context::Owner;
use deerflow_runtime::testkit::{Keep, at_once, run, thread};
use serde_json::json;

use super::new_thread;
use crate::thread_log::{LoggedEnd, LoggedRun, RESERVED, ThreadLogStore};
use crate::threads::{Deleted, ThreadStore};

/// Generates one test per requirement of stores of thread logs.
#[macro_export]
macro_rules! thread_log_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::thread_log]
            runs_follow_each_other_without_holes
            position_of_run_never_changes
            first_end_of_run_is_stored
            run_after_unfinished_one_begins_beyond_it
            concurrent_opens_assign_one_position
            threads_have_their_own_positions
            positions_are_deleted_with_thread
        }
    };
}

/// Store of thread logs, opened fresh for each test.
#[derive(Debug, Clone)]
pub struct ThreadLogStores {
    /// Store under test.
    pub log: Arc<dyn ThreadLogStore>,
    /// Thread store over the same database, if there is one.
    pub threads: Option<Arc<dyn ThreadStore>>,
    /// Resources that must live as long as the store.
    pub keep: Arc<dyn Keep>,
}

impl ThreadLogStores {
    async fn create(&self, id: &str) {
        if let Some(threads) = &self.threads {
            let created = threads.create(new_thread(id, json!({}))).await;
            created.expect("the thread is created");
        }
    }

    async fn open(&self, on: &str, id: &str) -> LoggedRun {
        let opened = self.log.open(&thread(on), &run(id)).await;
        opened.expect("opened").expect("the thread exists")
    }

    async fn close(&self, on: &str, id: &str, count: u64) -> Option<u64> {
        let status = format!("status {count}");
        let end = LoggedEnd { count, status };
        let closed = self.log.close(&thread(on), &run(id), end).await;
        closed.expect("closed").map(|end| {
            assert_eq!(end.status, format!("status {}", end.count));
            end.count
        })
    }
}

/// A run begins at the position after the last one of the run before it.
pub async fn runs_follow_each_other_without_holes<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    stores.create("t1").await;
    for (id, first) in [("r1", 1), ("r2", 11), ("r3", 21)] {
        assert_eq!(stores.open("t1", id).await.first, first);
        assert_eq!(stores.close("t1", id, 10).await, Some(10));
    }
    let ranges = stores.log.ranges(&thread("t1")).await.expect("read");
    let found: Vec<_> = ranges
        .iter()
        .map(|range| {
            let count = range.end.as_ref().map(|end| end.count);
            (range.run_id.as_str(), range.first, count)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("r1", 1, Some(10)),
            ("r2", 11, Some(10)),
            ("r3", 21, Some(10))
        ]
    );
}

/// A run that is opened again has the position of the first time.
pub async fn position_of_run_never_changes<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    stores.create("t1").await;
    let first = stores.open("t1", "r1").await;
    stores.close("t1", "r1", 5).await;
    stores.open("t1", "r2").await;
    let again = stores.open("t1", "r1").await;
    let count = again.end.map(|end| end.count);
    assert_eq!((again.first, count), (first.first, Some(5)));
}

/// A later end of a run is ignored; a run that was not opened has none.
pub async fn first_end_of_run_is_stored<F: Future<Output = ThreadLogStores>>(open: impl Fn() -> F) {
    let stores = open().await;
    stores.create("t1").await;
    stores.open("t1", "r1").await;
    assert_eq!(stores.close("t1", "r1", 5).await, Some(5));
    assert_eq!(stores.close("t1", "r1", 9).await, Some(5));
    assert_eq!(stores.close("t1", "r2", 9).await, None);
}

/// A run after one without an end begins at a position that the earlier one cannot reach.
pub async fn run_after_unfinished_one_begins_beyond_it<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    stores.create("t1").await;
    stores.open("t1", "r1").await;
    assert_eq!(stores.open("t1", "r2").await.first, 1 + RESERVED);
}

/// Nodes that open a run at the same time get the same position.
pub async fn concurrent_opens_assign_one_position<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    stores.create("t1").await;
    let opened = at_once((0..8).map(|_| {
        let stores = stores.clone();
        async move { stores.open("t1", "r1").await.first }
    }))
    .await;
    assert_eq!(opened, [1; 8]);
}

/// The positions of two threads are independent.
pub async fn threads_have_their_own_positions<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    stores.create("t1").await;
    stores.create("t2").await;
    stores.open("t1", "r1").await;
    assert_eq!(stores.open("t2", "r2").await.first, 1);
    assert_eq!(
        stores.log.ranges(&thread("t1")).await.expect("read").len(),
        1
    );
}

/// The positions of a deleted thread are deleted, and its runs cannot be opened.
pub async fn positions_are_deleted_with_thread<F: Future<Output = ThreadLogStores>>(
    open: impl Fn() -> F,
) {
    let stores = open().await;
    let Some(threads) = stores.threads.clone() else {
        return;
    };
    stores.create("t1").await;
    stores.open("t1", "r1").await;
    let deleted = threads.delete(&thread("t1"), &Owner::None).await;
    assert_eq!(deleted.expect("deleted"), Deleted::Removed);
    assert_eq!(stores.log.ranges(&thread("t1")).await.expect("read"), []);
    let opened = stores.log.open(&thread("t1"), &run("r1")).await;
    assert_eq!(opened.expect("read"), None);
}
