//! Contract suite of feedback stores.

use deerflow_core::actor_context::{NoActor, Owner};
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{RunCommit, StoreError};
use deerflow_runtime::testkit::{USER, at, at_once, commit_of, end_in, new_run, run, thread};

use super::{ThreadStores, ann, bob};
use crate::feedback::{Feedback, Rating};
use crate::threads::Deleted;

/// Generates one test per requirement of feedback stores.
#[macro_export]
macro_rules! feedback_store_suite {
    ($attrs:tt $open:expr) => {
        deerflow_runtime::promises! { $attrs $open, [$crate::testkit::feedback]
            feedback_is_returned_unchanged
            second_feedback_replaces_and_keeps_id
            concurrent_feedback_leaves_one_row_per_user
            feedback_of_other_user_is_hidden
            feedback_on_missing_run_is_rejected
            feedback_on_copied_run_requires_its_thread
            feedback_is_deleted_with_run_and_thread
        }
    };
}

/// Creates a finished run of [`USER`].
async fn finished(stores: &ThreadStores, id: &str, on: &str) {
    let record = stores
        .runs
        .create
        .admit(new_run(id, on))
        .await
        .expect("admitted")
        .run;
    let end = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    stores.runs.commit.commit(end.into()).await.expect("ended");
}

fn thumbs(id: &str, on: &str, of: &str, rating: Rating) -> Feedback {
    Feedback {
        feedback_id: id.to_owned(),
        thread_id: thread(on),
        run_id: run(of),
        user_id: USER.to_owned(),
        message_id: None,
        rating,
        comment: None,
        created_at: at(7),
    }
}

async fn put(stores: &ThreadStores, feedback: Feedback) -> Feedback {
    stores
        .feedback
        .put(feedback)
        .await
        .expect("written")
        .expect("the run is there")
}

async fn all(stores: &ThreadStores, on: &str) -> Vec<Feedback> {
    stores
        .feedback
        .list(&thread(on), None, &Owner::None)
        .await
        .expect("read")
}

/// Lists per run and per thread, oldest first.
pub async fn feedback_is_returned_unchanged(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    for id in ["r1", "r2"] {
        finished(&stores, id, "t1").await;
    }
    let later = Feedback {
        created_at: at(8),
        ..thumbs("f1", "t1", "r1", Rating::Up)
    };
    let full = Feedback {
        message_id: Some("m1".to_owned()),
        comment: Some("why 😀".to_owned()),
        ..thumbs("f2", "t1", "r2", Rating::Down)
    };
    assert_eq!(put(&stores, later.clone()).await, later);
    assert_eq!(put(&stores, full.clone()).await, full);
    assert_eq!(all(&stores, "t1").await, [full.clone(), later]);
    assert_eq!(
        stores
            .feedback
            .list(&thread("t1"), Some(&run("r2")), &ann())
            .await,
        Ok(vec![full])
    );
    assert_eq!(all(&stores, "t2").await, []);
}

/// Rating, comment, message and time are replaced.
pub async fn second_feedback_replaces_and_keeps_id(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    finished(&stores, "r1", "t1").await;
    put(
        &stores,
        Feedback {
            comment: Some("fine".to_owned()),
            ..thumbs("f1", "t1", "r1", Rating::Up)
        },
    )
    .await;
    let again = Feedback {
        message_id: Some("m1".to_owned()),
        created_at: at(9),
        ..thumbs("f2", "t1", "r1", Rating::Down)
    };
    let expected = Feedback {
        feedback_id: "f1".to_owned(),
        ..again.clone()
    };
    assert_eq!(put(&stores, again).await, expected);
    assert_eq!(all(&stores, "t1").await, [expected]);
}

/// Concurrent submissions of a user result in one row.
pub async fn concurrent_feedback_leaves_one_row_per_user(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    finished(&stores, "r1", "t1").await;
    let written = at_once((0..20).map(|n| {
        let stores = stores.clone();
        let user_id = ["ann", "bob"][n % 2].to_owned();
        async move {
            put(
                &stores,
                Feedback {
                    user_id,
                    ..thumbs(&format!("f{n}"), "t1", "r1", Rating::Up)
                },
            )
            .await
        }
    }))
    .await;
    let stored = all(&stores, "t1").await;
    assert_eq!(stored.len(), 2);
    assert!(written.iter().all(|row| {
        stored.iter().any(|stored| {
            (&stored.feedback_id, &stored.user_id) == (&row.feedback_id, &row.user_id)
        })
    }));
}

/// Neither reads nor deletes reach it; without an actor the call fails.
pub async fn feedback_of_other_user_is_hidden(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    finished(&stores, "r1", "t1").await;
    let own = put(&stores, thumbs("f1", "t1", "r1", Rating::Up)).await;
    let (on, of) = (thread("t1"), run("r1"));
    assert_eq!(stores.feedback.list(&on, None, &bob()).await, Ok(vec![]));
    assert_eq!(
        stores.feedback.delete(&on, &of, None, &bob()).await,
        Ok(false)
    );
    assert_eq!(
        stores.feedback.list(&on, None, &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
    assert_eq!(
        stores.feedback.delete(&on, &of, Some("f2"), &ann()).await,
        Ok(false)
    );
    assert_eq!(all(&stores, "t1").await, [own]);
    assert_eq!(
        stores.feedback.delete(&on, &of, Some("f1"), &ann()).await,
        Ok(true)
    );
    assert_eq!(
        stores.feedback.delete(&on, &of, None, &ann()).await,
        Ok(false)
    );
}

/// A run of another thread gets no feedback either.
pub async fn feedback_on_missing_run_is_rejected(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    finished(&stores, "r1", "t1").await;
    for (on, of) in [("t1", "r2"), ("t2", "r1")] {
        assert_eq!(
            stores.feedback.put(thumbs("f1", on, of, Rating::Up)).await,
            Ok(None)
        );
        assert_eq!(all(&stores, on).await, []);
    }
}

/// A branch without its thread has no feedback.
pub async fn feedback_on_copied_run_requires_its_thread(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    finished(&stores, "r1", "t1").await;
    let copied = |on| thumbs("f1", on, "branch-seed-t1-0", Rating::Up);
    let missing = stores.feedback.put(copied("t2")).await;
    assert_eq!(
        missing,
        Ok(None),
        "a run that was copied into another thread"
    );
    put(&stores, copied("t1")).await;
    let missing = thumbs("f2", "t3", "branch-seed-t3-0", Rating::Up);
    assert_eq!(stores.feedback.put(missing).await, Ok(None));
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::Removed)
    );
    assert_eq!(all(&stores, "t1").await, []);
}

/// Feedback of other runs and threads stays.
pub async fn feedback_is_deleted_with_run_and_thread(open: impl AsyncFn() -> ThreadStores) {
    let stores = open().await;
    for (id, on) in [("r1", "t1"), ("r2", "t1"), ("r3", "t2")] {
        finished(&stores, id, on).await;
        put(&stores, thumbs(&format!("of-{id}"), on, id, Rating::Up)).await;
    }
    let ids = async |on| {
        all(&stores, on)
            .await
            .into_iter()
            .map(|row| row.feedback_id)
            .collect::<Vec<_>>()
    };
    assert_eq!(stores.runs.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(ids("t1").await, ["of-r2"]);
    assert_eq!(
        stores.threads.delete(&thread("t1"), &ann()).await,
        Ok(Deleted::Removed)
    );
    assert_eq!(
        (ids("t1").await, ids("t2").await),
        (vec![], vec!["of-r3".to_owned()])
    );
}
