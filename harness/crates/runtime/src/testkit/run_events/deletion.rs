//! Contract of deleting journal events.

use super::{list, seqs};
use crate::testkit::{RunStores, all_events, event, run, thread};

/// A cursor held by a client never refers to two events.
pub async fn seq_is_not_reused_after_deletion(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    stores
        .events
        .append(vec![event("t1", "r1", "a"), event("t1", "r2", "b")])
        .await
        .expect("appended");
    stores
        .events
        .delete_run(&thread("t1"), &run("r2"))
        .await
        .expect("deleted");
    stores
        .events
        .delete_run(&thread("t1"), &run("r2"))
        .await
        .expect("deleted again");
    assert_eq!(
        stores.events.append(vec![event("t1", "r3", "c")]).await,
        Ok(vec![3])
    );
    assert_eq!(seqs(&stores, "t1", all_events()).await, [1, 3]);
}

/// Deletion is idempotent.
pub async fn deleting_thread_events_leaves_other_threads_unchanged(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    stores
        .events
        .append(vec![event("t1", "r1", "a"), event("t2", "r1", "b")])
        .await
        .expect("appended");
    for _ in 0..2 {
        stores
            .events
            .delete_thread(&thread("t1"))
            .await
            .expect("deleted");
    }
    assert_eq!(seqs(&stores, "t1", all_events()).await, [0; 0]);
    assert_eq!(seqs(&stores, "t2", all_events()).await, [1]);
    stores
        .events
        .append(vec![event("t1", "r1", "a")])
        .await
        .expect("appended");
    assert_eq!(list(&stores, "t1", all_events()).await.len(), 1);
}
