//! Requirements on contents that no version has any more.

use std::sync::Arc;

use deerflow_core::actor_context::Owner;
use deerflow_runtime::agent::AssistantPin;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::RunCommit;
use deerflow_runtime::testkit::{USER, at, commit_of, end_in, new_run, thread};

use serde_json::json;

use super::{FlowStores, QUOTA, content, saved, write};
use crate::flows::{DeletedFlow, Expected, FlowQuota, SYSTEM_OWNER};
use crate::testkit::{ThreadStores, new_thread};
use crate::threads::Deleted;

/// It stays readable by its hash until then, and a new version with it ends the period.
pub async fn content_of_removed_version_is_swept_after_its_time(
    open: impl AsyncFn() -> FlowStores,
) {
    let stores = open().await;
    let flows = &stores.flows;
    let read = async |text: &str| {
        flows
            .content(USER, &content(text).hash())
            .await
            .expect("read")
            .is_some()
    };
    saved(&stores, write("f", "one", Expected::Absent), at(1)).await;
    saved(&stores, write("g", "shared", Expected::Absent), at(1)).await;
    let quota = FlowQuota {
        versions: 1,
        ..QUOTA
    };
    for (n, text) in [(2, "shared"), (3, "three")] {
        let writes = vec![write("f", text, Expected::Present)];
        flows.save(USER, writes, quota, at(n)).await.expect("saved");
    }
    assert_eq!(flows.sweep(at(1), 9).await, Ok(0));
    assert!(read("one").await);
    assert_eq!(flows.sweep(at(2), 9).await, Ok(1));
    assert!(!read("one").await);
    // Another flow has a version with it.
    assert_eq!(flows.sweep(at(9), 9).await, Ok(0));
    assert!(read("shared").await);
    assert_eq!(
        flows.delete(USER, "g", None, at(10)).await,
        Ok(DeletedFlow::Removed)
    );
    saved(&stores, write("g", "shared", Expected::Absent), at(11)).await;
    assert_eq!(flows.sweep(at(20), 9).await, Ok(0));
    assert_eq!(
        flows.delete(USER, "f", None, at(30)).await,
        Ok(DeletedFlow::Removed)
    );
    assert_eq!(
        flows.delete(USER, "g", None, at(30)).await,
        Ok(DeletedFlow::Removed)
    );
    assert_eq!(flows.sweep(at(30), 1).await, Ok(1));
    assert_eq!(flows.sweep(at(30), 9).await, Ok(1));
    assert!(!read("shared").await && !read("three").await);
}

/// Each call renews it.
pub async fn content_without_version_stays_until_a_sweep(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let flows = &stores.flows;
    let (text, hash) = (content("one"), content("one").hash());
    for n in [1, 5, 3] {
        flows
            .store_content(SYSTEM_OWNER, text.clone(), at(n))
            .await
            .expect("stored");
    }
    assert_eq!(flows.content(USER, &hash).await, Ok(None));
    assert_eq!(flows.sweep(at(4), 9).await, Ok(0));
    assert_eq!(
        flows.content(SYSTEM_OWNER, &hash).await,
        Ok(Some(text.clone()))
    );
    assert_eq!(flows.sweep(at(5), 9).await, Ok(1));
    assert_eq!(flows.content(SYSTEM_OWNER, &hash).await, Ok(None));
    // A call does not end the use by a version.
    saved(&stores, write("f", "one", Expected::Absent), at(6)).await;
    flows
        .store_content(USER, text.clone(), at(7))
        .await
        .expect("stored");
    assert_eq!(flows.sweep(at(9), 9).await, Ok(0));
}

/// Also in a copy of the thread, until the last of the threads is deleted.
pub async fn content_pinned_by_a_thread_outlives_its_flow(open: impl AsyncFn() -> FlowStores) {
    let stores = open().await;
    let Some(ThreadStores { threads, runs, .. }) = &stores.threads else {
        return;
    };
    let flow = saved(&stores, write("f", "one", Expected::Absent), at(0)).await;
    for n in 1..3 {
        let mut new = new_run(&format!("r{n}"), "t1");
        Arc::make_mut(&mut new.recipe).pin = Some(AssistantPin {
            version: 1,
            content_hash: flow.content_hash.clone(),
        });
        let run = runs.create.admit(new).await.expect("admitted").run;
        let end = RunCommit {
            end: Some(end_in(RunStatus::Error)),
            ..commit_of(&run)
        };
        runs.commit.commit(end.into()).await.expect("ended");
    }
    let deleted = stores.flows.delete(USER, "f", None, at(1)).await;
    assert_eq!(deleted, Ok(DeletedFlow::Removed));
    let swept = async || stores.flows.sweep(at(9), 9).await.expect("swept");
    assert_eq!(swept().await, 0);
    threads
        .create(new_thread("t2", json!({})))
        .await
        .expect("made");
    runs.checkpoints
        .copy_thread(&thread("t1"), &thread("t2"))
        .await
        .expect("copied");
    let delete = async |name| {
        let deleted = threads.delete(&thread(name), &Owner::None).await;
        assert_eq!(deleted, Ok(Deleted::Removed));
    };
    delete("t1").await;
    assert_eq!(swept().await, 0);
    let pinned = stores.flows.content(USER, &flow.content_hash).await;
    assert_eq!(pinned, Ok(Some(content("one"))));
    delete("t2").await;
    assert_eq!(swept().await, 1);
}
