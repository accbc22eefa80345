//! Contract of checkpoint deletion and of copying threads.

use super::{ThreadScript, all, ids, text_update};
use crate::testkit::{RunStores, run, thread};

/// Deletion is idempotent, and positions of the log are never reused.
pub async fn deleting_a_run_leaves_the_log_and_other_runs(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(Some("r1"), text_update("m1")).await;
    script.step(Some("r2"), text_update("m2")).await;
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

/// A run that starts after the only run was rolled back must not reuse the positions of that run.
pub async fn log_tail_survives_deletion_of_checkpoints(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(
        stores
            .checkpoints
            .log_tail(&thread("t1"))
            .await
            .expect("read"),
        0
    );
    ThreadScript::new(&stores, "t1")
        .step(Some("r1"), text_update("m1"))
        .await;
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
    let mut script = ThreadScript {
        tail,
        ..ThreadScript::new(&stores, "t1")
    };
    script.step(Some("r2"), text_update("m2")).await;
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((ids(&read.state), read.log_tail), (vec!["m2"], 2));
}

/// Deletion is idempotent, and the thread can start again.
pub async fn a_deleted_thread_is_empty(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut other = ThreadScript::new(&stores, "t2");
    other.step(None, text_update("m1")).await;
    ThreadScript::new(&stores, "t1")
        .step(None, text_update("m1"))
        .await;
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
    ThreadScript::new(&stores, "t1")
        .step(None, text_update("m1"))
        .await;
    let read = stores
        .checkpoints
        .get(&thread("t2"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(read.state, other.state);
}

/// Both threads evolve independently.
pub async fn thread_copy_is_independent(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut script = ThreadScript::new(&stores, "t1");
    script.step(None, text_update("m1")).await;
    script.step(None, text_update("m2")).await;
    stores
        .checkpoints
        .copy_thread(&thread("t1"), &thread("t2"))
        .await
        .expect("copied");
    script.step(None, text_update("m3")).await;
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
