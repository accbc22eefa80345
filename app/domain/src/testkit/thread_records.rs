//! Contract of thread records: creation, ownership and patches.

use deerflow_core::actor_context::{NoActor, Owner};
use deerflow_runtime::runs::ThreadStatus;
use deerflow_runtime::runs::store::{CreatedResource, KeyState, StoreError};
use deerflow_runtime::testkit::requests::key as request_key;
use deerflow_runtime::testkit::{at, at_once, object, thread};
use serde_json::{Value, json};

use super::{ThreadStores, ann, bob, get, make, new_thread};
use crate::threads::{Created, Deleted, NewThread, ThreadPatch, ThreadSearch};

/// The new thread is idle and untitled, with its metadata.
pub async fn created_thread_is_returned_unchanged(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let metadata = json!({"z": null, "a": [1, 1.0], "text": "\u{0} 😀"});
    let created = make(
        &stores,
        NewThread {
            assistant: Some("lead_agent".to_owned()),
            ..new_thread("t1", metadata.clone())
        },
    )
    .await;
    assert_eq!(
        (
            created.status,
            created.title.as_deref(),
            created.assistant.as_deref()
        ),
        (ThreadStatus::Idle, None, Some("lead_agent"))
    );
    assert_eq!((created.created_at, created.updated_at), (at(0), at(0)));
    assert_eq!(
        Value::Object(created.metadata.clone()).to_string(),
        metadata.to_string()
    );
    assert_eq!(get(&stores, "t1").await, created);
    assert_eq!(
        stores.threads.get(&thread("t2"), &Owner::None).await,
        Ok(None)
    );
}

/// Of concurrent calls one creates the thread; the others of the same user return it.
pub async fn repeated_create_returns_existing_thread_to_owner_only(
    open: impl AsyncFn() -> ThreadStores,
) {
    let stores = open().await;
    let results = at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .threads
                .create(new_thread("t1", json!({"n": n})))
                .await
                .expect("written")
        }
    }))
    .await;
    assert_eq!(
        results
            .iter()
            .filter(|created| matches!(created, Created::New(_)))
            .count(),
        1
    );
    let stored = get(&stores, "t1").await;
    assert!(results.into_iter().all(|created| matches!(created, Created::New(record) | Created::Existing(record) if record == stored)));
    for user_id in [Some("bob".to_owned()), None] {
        let foreign = NewThread {
            user_id,
            ..new_thread("t1", json!({}))
        };
        assert_eq!(stores.threads.create(foreign).await, Ok(Created::Taken));
    }
    assert_eq!(get(&stores, "t1").await, stored);
}

/// A repeated key returns only its own thread; a request that creates none leaves its key unused.
pub async fn repeated_thread_request_returns_its_thread(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let keyed = |id: &str, name: &str| NewThread {
        request: Some(request_key(name)),
        ..new_thread(id, json!({}))
    };
    let results = at_once((0..8).map(|n| {
        let (stores, new) = (stores.clone(), keyed(&format!("t{n}"), "k"));
        async move { stores.threads.create(new).await.expect("written") }
    }))
    .await;
    let ids: Vec<_> = results
        .iter()
        .filter_map(|created| {
            if let Created::New(new) = created {
                Some(&new.thread_id)
            } else {
                None
            }
        })
        .collect();
    let [only] = ids.as_slice() else {
        panic!("{results:?}")
    };
    let known = Created::Known(KeyState::Again(CreatedResource::Thread((*only).clone())));
    assert_eq!(
        results.iter().filter(|created| **created == known).count(),
        7
    );
    assert_eq!(
        stores
            .threads
            .count(
                &ThreadSearch {
                    limit: 9,
                    ..ThreadSearch::default()
                },
                &ann()
            )
            .await,
        Ok(1)
    );
    let found = stores
        .threads
        .create(keyed(only.as_str(), "other"))
        .await
        .expect("written");
    assert!(matches!(found, Created::Existing(_)), "{found:?}");
    assert_eq!(
        stores
            .runs
            .requests
            .known(&request_key("other"), at(1))
            .await,
        Ok(None)
    );
}

/// Neither reads, searches, counts, changes nor deletes reach it; without an actor the call fails.
pub async fn thread_of_other_user_is_hidden(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let created = make(&stores, new_thread("t1", json!({}))).await;
    make(
        &stores,
        NewThread {
            user_id: None,
            ..new_thread("t2", json!({}))
        },
    )
    .await;
    let all = ThreadSearch {
        limit: 9,
        ..ThreadSearch::default()
    };
    assert_eq!(stores.threads.get(&thread("t1"), &bob()).await, Ok(None));
    assert_eq!(stores.threads.search(&all, &bob()).await, Ok(vec![]));
    assert_eq!(stores.threads.count(&all, &bob()).await, Ok(0));
    assert_eq!(
        stores
            .threads
            .patch(&thread("t1"), ThreadPatch::default(), &bob(), at(1))
            .await,
        Ok(None)
    );
    assert_eq!(
        stores.threads.delete(&thread("t1"), &bob()).await,
        Ok(Deleted::NotFound)
    );
    assert_eq!(
        stores.threads.get(&thread("t1"), &ann()).await,
        Ok(Some(created))
    );
    assert_eq!(stores.threads.get(&thread("t2"), &ann()).await, Ok(None));
    assert_eq!(stores.threads.count(&all, &Owner::None).await, Ok(2));
    assert_eq!(
        stores.threads.get(&thread("t1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
    assert_eq!(
        stores.threads.delete(&thread("t1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
}

/// Null values are stored, and only `touch` changes the time.
pub async fn patch_merges_one_level_deep(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t1", json!({"a": {"x": 1}, "b": 1}))).await;
    let patch = ThreadPatch {
        metadata: object(json!({"a": {"y": 2}, "b": null, "c": 3})),
        title: Some(Some("T".to_owned())),
        ..ThreadPatch::default()
    };
    let patched = stores
        .threads
        .patch(&thread("t1"), patch, &ann(), at(9))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        Value::Object(patched.metadata.clone()),
        json!({"a": {"y": 2}, "b": null, "c": 3})
    );
    assert_eq!(
        (patched.title.as_deref(), patched.updated_at),
        (Some("T"), at(0))
    );
    assert_eq!(get(&stores, "t1").await, patched);
    let touch = ThreadPatch {
        title: Some(None),
        touch: true,
        ..ThreadPatch::default()
    };
    let touched = stores
        .threads
        .patch(&thread("t1"), touch, &ann(), at(9))
        .await
        .expect("written")
        .expect("there");
    assert_eq!(
        (touched.title, touched.updated_at, touched.metadata),
        (None, at(9), patched.metadata)
    );
}

/// No change is lost.
pub async fn concurrent_patches_of_different_keys_both_apply(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    make(&stores, new_thread("t1", json!({}))).await;
    at_once((0..20).map(|n| {
        let stores = stores.clone();
        async move {
            let patch = ThreadPatch {
                metadata: object(json!({format!("k{n}"): n})),
                ..ThreadPatch::default()
            };
            stores
                .threads
                .patch(&thread("t1"), patch, &ann(), at(1))
                .await
                .expect("written")
        }
    }))
    .await;
    let metadata = get(&stores, "t1").await.metadata;
    assert!(
        (0..20).all(|n| metadata.get(&format!("k{n}")) == Some(&json!(n))),
        "{metadata:?}"
    );
}

/// The merged metadata is limited, also of concurrent patches; a refused patch changes nothing.
pub async fn patch_beyond_metadata_limit_changes_nothing(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    let before = make(&stores, new_thread("t1", json!({"a": "0123456789"}))).await;
    let patch = |key: &str, limit| ThreadPatch {
        metadata: object(json!({ key: "0123456789" })),
        title: Some(Some(key.to_owned())),
        touch: true,
        max_metadata_bytes: Some(limit),
        ..ThreadPatch::default()
    };
    let send = async |stores: ThreadStores, patch| {
        let (thread, owner) = (thread("t1"), ann());
        let patched = stores.threads.patch(&thread, patch, &owner, at(9)).await;
        patched.map(|patched| patched.expect("there").metadata)
    };
    let refused = send(stores.clone(), patch("b", 34)).await;
    assert!(
        matches!(&refused, Err(StoreError::TooLarge(refused)) if (refused.limit, refused.size) == (34, 35)),
        "{refused:?}"
    );
    assert_eq!(get(&stores, "t1").await, before);
    let both = object(json!({"a": "0123456789", "b": "0123456789"}));
    assert_eq!(send(stores.clone(), patch("b", 35)).await, Ok(both));
    let results = at_once((0..20).map(|n| {
        let (stores, patch) = (stores.clone(), patch(&format!("{n:02}"), 90));
        async move {
            let (thread, owner) = (thread("t1"), ann());
            let patched = stores.threads.patch(&thread, patch, &owner, at(9)).await;
            patched.is_ok()
        }
    }))
    .await;
    let metadata = get(&stores, "t1").await.metadata;
    assert_eq!(results.iter().filter(|accepted| **accepted).count(), 3);
    assert_eq!(metadata.len(), 5);
    assert_eq!(json!(metadata).to_string().len(), 89);
}
