//! Contract of idempotency keys of requests.

use bytes::Bytes;
use serde_json::json;

use super::{
    RunStores, USER, at, at_once, commit_of, end_in, new_run, on_temporary_thread, run, thread,
    with_request,
};
use crate::runs::RunStatus;
use crate::runs::store::{
    AdmitError, CreatedResource, KeyState, NewRun, RequestKey, RunCommit, RunEnd,
};
use deerflow_core::actor_context::Owner;

/// Generates one test per guarantee of idempotency keys.
#[macro_export]
macro_rules! request_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::requests]
            repeated_request_returns_its_run
            key_is_scoped_to_user_route_and_request
            concurrent_duplicates_create_one_run
            rejected_request_does_not_consume_key
            first_response_is_retained
            final_state_is_stored_for_the_request
            expired_keys_are_swept
        }
    };
}

/// Returns a key of [`USER`] that is valid until time 100.
pub fn key(name: &str) -> RequestKey {
    RequestKey {
        user_id: USER.to_owned(),
        route: "/threads/{thread_id}/runs".to_owned(),
        name: name.to_owned(),
        part: 0,
        digest: "d1".to_owned(),
        expires_at: at(100),
    }
}

fn keyed(id: &str, on: &str, key: RequestKey) -> NewRun {
    with_request(new_run(id, on), |request| request.request = Some(key))
}

fn its_run(id: &str, on: &str) -> KeyState {
    KeyState::Again(CreatedResource::Run(thread(on), run(id)))
}

/// The run is returned in any state, and no second run is created.
pub async fn repeated_request_returns_its_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(stores.requests.known(&key("k"), at(0)).await, Ok(None));
    let created = stores
        .create
        .admit(keyed("r1", "t1", key("k")))
        .await
        .expect("admitted")
        .run;
    let again = || AdmitError::KnownRequest(its_run("r1", "t1"));
    // The same for a thread that is busy, or that does not exist.
    assert_eq!(
        stores.create.admit(keyed("r2", "t1", key("k"))).await,
        Err(again())
    );
    assert_eq!(
        stores.create.admit(keyed("r2", "t2", key("k"))).await,
        Err(again())
    );
    assert_eq!(stores.query.active(&thread("t2")).await, Ok(None));
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&created)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    assert_eq!(
        stores.create.admit(keyed("r2", "t1", key("k"))).await,
        Err(again())
    );
    assert_eq!(
        stores.requests.known(&key("k"), at(99)).await,
        Ok(Some(its_run("r1", "t1")))
    );
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(None));
}

/// A different request under a used key is rejected; another user, route, name or part is another
/// key.
pub async fn key_is_scoped_to_user_route_and_request(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    stores
        .create
        .admit(keyed("r1", "t1", key("k")))
        .await
        .expect("admitted");
    let other = RequestKey {
        digest: "d2".to_owned(),
        ..key("k")
    };
    assert_eq!(
        stores.requests.known(&other, at(1)).await,
        Ok(Some(KeyState::Other))
    );
    assert_eq!(
        stores.create.admit(keyed("r2", "t2", other)).await,
        Err(AdmitError::KnownRequest(KeyState::Other))
    );
    let others = [
        RequestKey {
            user_id: "bob".to_owned(),
            ..key("k")
        },
        RequestKey {
            route: "/runs".to_owned(),
            ..key("k")
        },
        key("K"),
        key("k").part(1),
    ];
    for (n, other) in others.into_iter().enumerate() {
        assert_eq!(
            stores.requests.known(&other, at(1)).await,
            Ok(None),
            "{other:?}"
        );
        stores
            .create
            .admit(keyed(&format!("o{n}"), &format!("u{n}"), other))
            .await
            .expect("admitted");
    }
}

/// One request creates the run; the others receive it.
pub async fn concurrent_duplicates_create_one_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let created = at_once((0..12).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .create
                .admit(keyed(&format!("r{n}"), &format!("t{}", n % 3), key("k")))
                .await
        }
    }))
    .await;
    let runs: Vec<_> = created
        .iter()
        .filter_map(|created| created.as_ref().ok())
        .map(|admitted| admitted.run.clone())
        .collect();
    let [only] = runs.as_slice() else {
        panic!("{runs:?}")
    };
    let known = AdmitError::KnownRequest(KeyState::Again(CreatedResource::Run(
        only.thread_id.clone(),
        only.run_id.clone(),
    )));
    assert!(
        created
            .iter()
            .filter_map(|created| created.as_ref().err())
            .all(|error| *error == known),
        "{created:?}"
    );
    assert_eq!(
        stores
            .query
            .standing(None, &Owner::None)
            .await
            .map(|runs| runs.len()),
        Ok(1)
    );
}

/// The request may be repeated once the thread is free.
pub async fn rejected_request_does_not_consume_key(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let busy = stores.create.admit(keyed("r2", "t1", key("k"))).await;
    assert!(
        matches!(busy, Err(AdmitError::ThreadBusy { .. })),
        "{busy:?}"
    );
    assert_eq!(stores.requests.known(&key("k"), at(1)).await, Ok(None));
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&first)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    stores
        .create
        .admit(keyed("r2", "t1", key("k")))
        .await
        .expect("admitted");
}

/// The first response stays stored until the key is forgotten.
pub async fn first_response_is_retained(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let answer = |n: i64| CreatedResource::Answer(json!({ "n": n, "text": "\u{e9}" }));
    assert_eq!(
        stores.requests.keep(&key("k"), answer(1), at(1)).await,
        Ok(None)
    );
    assert_eq!(
        stores.requests.keep(&key("k"), answer(2), at(1)).await,
        Ok(Some(KeyState::Again(answer(1))))
    );
    let other = RequestKey {
        digest: "d2".to_owned(),
        ..key("k")
    };
    assert_eq!(
        stores.requests.keep(&other, answer(3), at(1)).await,
        Ok(Some(KeyState::Other))
    );
    stores.requests.forget(&key("k")).await.expect("forgotten");
    assert_eq!(stores.requests.known(&key("k"), at(1)).await, Ok(None));
    assert_eq!(
        stores.requests.keep(&other, answer(3), at(1)).await,
        Ok(None)
    );
}

/// The final state remains after its thread is deleted, until the run is deleted or the key
/// expires.
pub async fn final_state_is_stored_for_the_request(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let values = || Bytes::from_static("{\"title\":\"\u{e9}\\u0000\"}".as_bytes());
    let end = || RunEnd {
        kept_values: Some(values()),
        ..end_in(RunStatus::Success)
    };
    for (id, key) in [("r1", Some(key("k"))), ("r2", Some(key("l"))), ("r3", None)] {
        let new = on_temporary_thread(new_run(id, &format!("thread-{id}")));
        let new = with_request(new, |request| request.request = key);
        let created = stores.create.admit(new).await.expect("admitted").run;
        assert_eq!(stores.query.kept_values(&run(id)).await, Ok(None));
        let commit = RunCommit {
            advance: Some(RunStatus::Running),
            end: Some(end()),
            ..commit_of(&created)
        };
        stores.commit.commit(commit.into()).await.expect("ended");
    }
    assert_eq!(
        stores.query.kept_values(&run("r1")).await,
        Ok(Some(values()))
    );
    assert_eq!(
        stores.query.kept_values(&run("r3")).await,
        Ok(None),
        "the key can no longer be used"
    );
    assert_eq!(
        stores.requests.known(&key("k"), at(99)).await,
        Ok(Some(its_run("r1", "thread-r1")))
    );
    stores.delete.delete(&run("r1")).await.expect("deleted");
    assert_eq!(stores.query.kept_values(&run("r1")).await, Ok(None));
    assert_eq!(
        stores.query.kept_values(&run("r2")).await,
        Ok(Some(values()))
    );
    assert_eq!(stores.requests.sweep(at(100), 9).await, Ok(2));
    assert_eq!(stores.query.kept_values(&run("r2")).await, Ok(None));
}

/// An expired key is treated as absent, swept or not.
pub async fn expired_keys_are_swept(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for name in ["a", "b", "c"] {
        stores
            .requests
            .keep(&key(name), CreatedResource::Thread(thread("t9")), at(1))
            .await
            .expect("kept");
    }
    let later = RequestKey {
        expires_at: at(200),
        ..key("d")
    };
    stores
        .requests
        .keep(&later, CreatedResource::Thread(thread("t9")), at(1))
        .await
        .expect("kept");
    assert_eq!(stores.requests.known(&key("a"), at(100)).await, Ok(None));
    let anew = RequestKey {
        expires_at: at(200),
        digest: "d2".to_owned(),
        ..key("a")
    };
    stores
        .create
        .admit(NewRun {
            at: at(100),
            ..keyed("r1", "t1", anew.clone())
        })
        .await
        .expect("admitted");
    assert_eq!(stores.requests.sweep(at(99), 9).await, Ok(0));
    assert_eq!(stores.requests.sweep(at(100), 1).await, Ok(1));
    assert_eq!(stores.requests.sweep(at(100), 9).await, Ok(1));
    assert_eq!(
        stores.requests.known(&anew, at(101)).await,
        Ok(Some(its_run("r1", "t1")))
    );
    assert_eq!(
        stores.requests.known(&later, at(101)).await,
        Ok(Some(KeyState::Again(CreatedResource::Thread(thread("t9")))))
    );
}
