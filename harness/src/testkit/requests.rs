//! What is promised of requests that may come again.

use bytes::Bytes;
use serde_json::json;

use super::{RunStores, USER, at, at_once, commit_of, end_in, new_run, run, thread};
use crate::runtime::actor_context::Owner;
use crate::runtime::runs::RunStatus;
use crate::runtime::runs::store::{AdmitError, Known, Made, NewRun, RequestKey, RunCommit, RunEnd};

/// One test per promise of the keys of requests.
#[macro_export]
macro_rules! request_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::requests]
            a_request_that_comes_again_gets_its_run
            a_key_means_one_request_of_one_user_on_one_route
            of_many_twins_at_once_one_makes_the_run
            a_refused_request_leaves_its_key_free
            what_was_answered_stays_as_it_was_first
            a_run_leaves_its_last_state_to_its_request
            keys_end_and_are_swept
        }
    };
}

/// A key of [`USER`] that is known until moment 100.
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
    NewRun {
        request: Some(key),
        ..new_run(id, on)
    }
}

fn its_run(id: &str, on: &str) -> Known {
    Known::Again(Made::Run(thread(on), run(id)))
}

/// Whatever became of it, and nothing is made for it.
pub async fn a_request_that_comes_again_gets_its_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(stores.requests.known(&key("k"), at(0)).await, Ok(None));
    let made = stores
        .create
        .admit(keyed("r1", "t1", key("k")))
        .await
        .expect("admitted")
        .run;
    let again = || AdmitError::KnownRequest(its_run("r1", "t1"));
    // Not even on a thread that is busy, or that does not exist.
    assert_eq!(
        stores.create.admit(keyed("r2", "t1", key("k"))).await,
        Err(again())
    );
    assert_eq!(
        stores.create.admit(keyed("r2", "t2", key("k"))).await,
        Err(again())
    );
    assert_eq!(stores.query.active(&thread("t2")).await, Ok(None));
    stores
        .commit
        .commit(RunCommit {
            end: Some(end_in(RunStatus::Error)),
            ..commit_of(&made)
        })
        .await
        .expect("ended");
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

/// Another request under the key of one is told so; another user, route, name or part is another key.
pub async fn a_key_means_one_request_of_one_user_on_one_route(open: impl AsyncFn() -> RunStores) {
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
        Ok(Some(Known::Other))
    );
    assert_eq!(
        stores.create.admit(keyed("r2", "t2", other)).await,
        Err(AdmitError::KnownRequest(Known::Other))
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

/// And all the others get to know it.
pub async fn of_many_twins_at_once_one_makes_the_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let made = at_once((0..12).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .create
                .admit(keyed(&format!("r{n}"), &format!("t{}", n % 3), key("k")))
                .await
        }
    }))
    .await;
    let runs: Vec<_> = made
        .iter()
        .filter_map(|made| made.as_ref().ok())
        .map(|admitted| admitted.run.clone())
        .collect();
    let [only] = runs.as_slice() else {
        panic!("{runs:?}")
    };
    let known = AdmitError::KnownRequest(Known::Again(Made::Run(
        only.thread_id.clone(),
        only.run_id.clone(),
    )));
    assert!(
        made.iter()
            .filter_map(|made| made.as_ref().err())
            .all(|error| *error == known),
        "{made:?}"
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

/// It may be sent again when the thread is free.
pub async fn a_refused_request_leaves_its_key_free(open: impl AsyncFn() -> RunStores) {
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
    stores
        .commit
        .commit(RunCommit {
            end: Some(end_in(RunStatus::Error)),
            ..commit_of(&first)
        })
        .await
        .expect("ended");
    stores
        .create
        .admit(keyed("r2", "t1", key("k")))
        .await
        .expect("admitted");
}

/// Until it is forgotten.
pub async fn what_was_answered_stays_as_it_was_first(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let answer = |n: i64| Made::Answer(json!({ "n": n, "text": "\u{e9}" }));
    assert_eq!(
        stores.requests.keep(&key("k"), answer(1), at(1)).await,
        Ok(None)
    );
    assert_eq!(
        stores.requests.keep(&key("k"), answer(2), at(1)).await,
        Ok(Some(Known::Again(answer(1))))
    );
    let other = RequestKey {
        digest: "d2".to_owned(),
        ..key("k")
    };
    assert_eq!(
        stores.requests.keep(&other, answer(3), at(1)).await,
        Ok(Some(Known::Other))
    );
    stores.requests.forget(&key("k")).await.expect("forgotten");
    assert_eq!(stores.requests.known(&key("k"), at(1)).await, Ok(None));
    assert_eq!(
        stores.requests.keep(&other, answer(3), at(1)).await,
        Ok(None)
    );
}

/// Also when its thread goes, until the run is deleted or the key is over.
pub async fn a_run_leaves_its_last_state_to_its_request(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let values = || Bytes::from_static("{\"title\":\"\u{e9}\\u0000\"}".as_bytes());
    let end = || RunEnd {
        kept_values: Some(values()),
        ..end_in(RunStatus::Success)
    };
    for (id, request) in [("r1", Some(key("k"))), ("r2", Some(key("l"))), ("r3", None)] {
        let new = NewRun {
            temporary_thread: true,
            request,
            ..new_run(id, &format!("thread-{id}"))
        };
        let made = stores.create.admit(new).await.expect("admitted").run;
        assert_eq!(stores.query.kept_values(&run(id)).await, Ok(None));
        stores
            .commit
            .commit(RunCommit {
                advance: Some(RunStatus::Running),
                end: Some(end()),
                ..commit_of(&made)
            })
            .await
            .expect("ended");
    }
    assert_eq!(
        stores.query.kept_values(&run("r1")).await,
        Ok(Some(values()))
    );
    assert_eq!(
        stores.query.kept_values(&run("r3")).await,
        Ok(None),
        "nobody can ask for it again"
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

/// One that is over is as if it were not there, swept or not.
pub async fn keys_end_and_are_swept(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for name in ["a", "b", "c"] {
        stores
            .requests
            .keep(&key(name), Made::Thread(thread("t9")), at(1))
            .await
            .expect("kept");
    }
    let later = RequestKey {
        expires_at: at(200),
        ..key("d")
    };
    stores
        .requests
        .keep(&later, Made::Thread(thread("t9")), at(1))
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
        Ok(Some(Known::Again(Made::Thread(thread("t9")))))
    );
}
