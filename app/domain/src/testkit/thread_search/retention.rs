//! Contract of checkpoint retention and thread expiry.

use chrono::TimeDelta;
use deerflow_core::actor_context::Owner;
use deerflow_runtime::runs::{Expiry, RunStatus, ThreadTtl};
use deerflow_runtime::testkit::{USER, at, new_run, thread, with_request};
use serde_json::json;

use super::ended_with;
use crate::testkit::{ThreadStores, ann, bob, by_metadata, found, get, make, new_thread};
use crate::threads::{Deleted, NewThread, SweptThreads, ThreadPatch};

/// Does nothing while a run is active.
pub async fn deleting_past_keeps_newest_checkpoint(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    ended_with(
        &stores,
        "t1",
        1,
        json!({"title": "a"}),
        RunStatus::Interrupted,
    )
    .await;
    let state = ended_with(
        &stores,
        "t1",
        2,
        json!({"title": "b"}),
        RunStatus::Interrupted,
    )
    .await;
    assert_eq!(
        stores
            .threads
            .delete_past_checkpoints(&thread("t1"), &bob())
            .await,
        Ok(Deleted::NotFound)
    );
    assert_eq!(
        stores
            .threads
            .delete_past_checkpoints(&thread("t1"), &ann())
            .await,
        Ok(Deleted::Removed)
    );
    let all = deerflow_runtime::checkpoint::HistoryQuery {
        limit: 9,
        ..Default::default()
    };
    let remaining = stores
        .runs
        .checkpoints
        .list(&thread("t1"), &all)
        .await
        .expect("read");
    assert_eq!((remaining.len(), &remaining[0].state), (1, &state));
    stores
        .runs
        .create
        .admit(new_run("r-busy", "t1"))
        .await
        .expect("admitted");
    assert_eq!(
        stores
            .threads
            .delete_past_checkpoints(&thread("t1"), &ann())
            .await,
        Ok(Deleted::Busy)
    );
}

fn seconds(n: i64, then: Expiry) -> Option<ThreadTtl> {
    Some(ThreadTtl {
        after: TimeDelta::seconds(n),
        then,
    })
}

/// The lifetime starts at the last change; busy threads are retained. The runs of the deleted
/// threads are reported.
pub async fn expired_threads_are_deleted(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let ttl = seconds(10, Expiry::Delete);
    for id in ["t1", "t2", "t3", "t4"] {
        make(
            &stores,
            NewThread {
                ttl,
                ..new_thread(id, json!({"mark": 1}))
            },
        )
        .await;
    }
    make(&stores, new_thread("t5", json!({}))).await;
    assert_eq!(
        get(&stores, "t1").await.expires_at(),
        Some(at(0) + TimeDelta::seconds(10))
    );
    let touch = ThreadPatch {
        touch: true,
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t2"), touch, &ann(), at(8))
        .await
        .expect("written");
    stores
        .runs
        .create
        .admit(new_run("r3", "t3"))
        .await
        .expect("admitted");
    let longer = ThreadPatch {
        ttl: seconds(3600, Expiry::Delete),
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t4"), longer, &ann(), at(8))
        .await
        .expect("written");
    assert_eq!(
        stores.threads.sweep(at(9), 100).await,
        Ok(SweptThreads::default())
    );
    let swept = stores
        .threads
        .sweep(at(12), 100)
        .await
        .expect("written")
        .deleted;
    assert_eq!(
        swept
            .iter()
            .map(|gone| (gone.thread_id.as_str(), gone.user_id.as_deref()))
            .collect::<Vec<_>>(),
        [("t1", Some(USER))]
    );
    assert_eq!(
        stores.threads.get(&thread("t1"), &Owner::None).await,
        Ok(None)
    );
    assert_eq!(
        found(&stores, by_metadata(json!({"mark": 1}))).await,
        ["t2", "t3", "t4"]
    );
    make(
        &stores,
        NewThread {
            ttl,
            ..new_thread("t6", json!({}))
        },
    )
    .await;
    ended_with(&stores, "t6", 1, json!({}), RunStatus::Error).await;
    let end = get(&stores, "t6").await.expires_at().expect("an end");
    let swept = stores.threads.sweep(end, 100).await.expect("written");
    assert!(
        swept
            .deleted
            .iter()
            .any(|gone| gone.thread_id == thread("t6"))
    );
    assert_eq!(
        swept
            .runs
            .iter()
            .map(|run| run.as_str())
            .collect::<Vec<_>>(),
        ["r-t6-1"]
    );
}

/// Trimmed once after each change; nothing else of the thread changes.
pub async fn expired_threads_are_trimmed_to_newest_state(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let ttl = seconds(10, Expiry::KeepLatest);
    make(
        &stores,
        NewThread {
            ttl,
            ..new_thread("t1", json!({}))
        },
    )
    .await;
    for n in [1, 2] {
        ended_with(
            &stores,
            "t1",
            n,
            json!({"title": n.to_string()}),
            RunStatus::Interrupted,
        )
        .await;
    }
    let before = get(&stores, "t1").await;
    assert_eq!(before.ttl, ttl);
    let end = before.expires_at().expect("an end");
    let states = async || {
        let all = deerflow_runtime::checkpoint::HistoryQuery {
            limit: 9,
            ..Default::default()
        };
        stores
            .runs
            .checkpoints
            .list(&thread("t1"), &all)
            .await
            .expect("read")
    };
    assert_eq!(
        stores
            .threads
            .sweep(end - TimeDelta::microseconds(1), 100)
            .await,
        Ok(SweptThreads::default())
    );
    let newest = states().await.swap_remove(0);
    let forgot = SweptThreads {
        trimmed: 1,
        ..SweptThreads::default()
    };
    assert_eq!(stores.threads.sweep(end, 100).await, Ok(forgot.clone()));
    let remaining = states().await;
    assert_eq!(
        (
            remaining.len(),
            &remaining[0].state,
            get(&stores, "t1").await
        ),
        (1, &newest.state, before)
    );
    assert_eq!(
        stores.threads.sweep(end + TimeDelta::days(1), 100).await,
        Ok(SweptThreads::default())
    );
    let touch = ThreadPatch {
        touch: true,
        ..ThreadPatch::default()
    };
    stores
        .threads
        .patch(&thread("t1"), touch, &ann(), end)
        .await
        .expect("written");
    assert_eq!(
        stores.threads.sweep(end + TimeDelta::seconds(9), 100).await,
        Ok(SweptThreads::default())
    );
    assert_eq!(
        stores
            .threads
            .sweep(end + TimeDelta::seconds(10), 100)
            .await,
        Ok(forgot)
    );
}

/// An existing thread keeps its own lifetime.
pub async fn run_sets_ttl_of_thread_it_creates(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let run = |id: &str, on: &str, thread_ttl| {
        with_request(new_run(id, on), |request| request.thread_ttl = thread_ttl)
    };
    make(&stores, new_thread("t1", json!({}))).await;
    for then in [Expiry::Delete, Expiry::KeepLatest] {
        let (on, ttl) = (then.as_str(), seconds(10, then));
        stores
            .runs
            .create
            .admit(run(on, on, ttl))
            .await
            .expect("admitted");
        assert_eq!(get(&stores, on).await.ttl, ttl);
    }
    stores
        .runs
        .create
        .admit(run("r1", "t1", seconds(10, Expiry::Delete)))
        .await
        .expect("admitted");
    stores
        .runs
        .create
        .admit(run("r2", "t2", None))
        .await
        .expect("admitted");
    assert_eq!(
        (get(&stores, "t1").await.ttl, get(&stores, "t2").await.ttl),
        (None, None)
    );
}
