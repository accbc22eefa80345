//! Contract of run commits: atomicity, fencing of older attempts, and ends.

use serde_json::json;

use super::{admit, end, get, started};
use crate::checkpoint::HistoryQuery;
use crate::runs::store::{AdmitError, CommitError, RunCommit, StoreError};
use crate::runs::{RunCompletionData, RunStatus};
use crate::testkit::{
    RunStores, USER, all_events, at, at_once, checkpoint, checkpoint_write, commit_of, end_in,
    event, message, new_run, object, on_existing_thread, on_temporary_thread, run, thread,
};
use deerflow_core::actor_context::Owner;
use deerflow_core::state::{StateUpdate, ThreadState};

/// The whole commit is readable when the call returns.
pub async fn commit_writes_events_checkpoints_and_status_atomically(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    assert_eq!(record.status, RunStatus::Running);
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let ids = deerflow_core::ids::SeededIds::new(1);
    state
        .apply(
            StateUpdate::messages([message("m1", "hello")]).and("title", json!("T")),
            &ids,
        )
        .expect("applied");
    let mut last = end_in(RunStatus::Error);
    last.error = Some("boom 😀 \u{1}".to_owned());
    last.stop_reason = Some("loop_capped".to_owned());
    last.title = Some("T".to_owned());
    last.completion = RunCompletionData {
        total_tokens: 7,
        token_usage_by_model: object(json!({"small": 7})),
        ..Default::default()
    };
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a"), event("t1", "r1", "b")],
        checkpoints: vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)],
        end: Some(last.clone()),
        ..commit_of(&record)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("committed");
    let over = get(&stores, "r1").await;
    assert_eq!(
        (over.status, over.error, over.stop_reason),
        (RunStatus::Error, last.error, last.stop_reason)
    );
    assert_eq!((over.completion, over.updated_at), (last.completion, at(5)));
    let events = stores
        .events
        .list(&thread("t1"), &all_events(), &Owner::User(USER.to_owned()))
        .await
        .expect("read");
    assert_eq!(
        events
            .iter()
            .map(|event| (event.seq, &*event.event.content))
            .collect::<Vec<_>>(),
        [(1, &json!({"text": "a"})), (2, &json!({"text": "b"}))]
    );
    let snapshot = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        (snapshot.state, snapshot.meta.run_id),
        (state, Some(run("r1")))
    );
}

/// Fencing: a superseded attempt cannot write.
pub async fn commit_of_older_attempt_is_fenced(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let commit = RunCommit {
        advance: Some(RunStatus::Pending),
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("released");
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let stale = RunCommit {
        events: vec![event("t1", "r1", "late")],
        checkpoints: vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    assert_eq!(
        stores.commit.commit(stale.into()).await,
        Err(CommitError::OwnershipLost {
            run_id: run("r1"),
            attempt: 1
        })
    );
    assert_eq!(get(&stores, "r1").await.status, RunStatus::Pending);
    assert_eq!(
        stores
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
}

/// Only one terminal status is stored.
pub async fn concurrent_ends_store_exactly_one(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let ends = [
        RunStatus::Success,
        RunStatus::Error,
        RunStatus::Interrupted,
        RunStatus::Timeout,
    ];
    let results = at_once((0..20).map(|n| {
        let (stores, commit) = (
            stores.clone(),
            RunCommit {
                end: Some(end_in(ends[n % 4])),
                ..commit_of(&record)
            },
        );
        async move { (ends[n % 4], stores.commit.commit(commit.into()).await) }
    }))
    .await;
    let won: Vec<_> = results
        .iter()
        .filter(|(_, result)| result.is_ok())
        .collect();
    assert_eq!(won.len(), 1, "{results:?}");
    assert_eq!(get(&stores, "r1").await.status, won[0].0);
    assert_eq!(
        results
            .iter()
            .filter(|(_, result)| *result == Err(CommitError::AlreadyTerminal(run("r1"))))
            .count(),
        19
    );
}

/// Text of a model or provider may contain any character; the end is stored anyway.
pub async fn end_with_control_characters_is_stored(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let mut last = end_in(RunStatus::Error);
    last.error = Some("bad byte \0 here".to_owned());
    last.error_name = Some("Value\0Error".to_owned());
    last.title = Some("\0".to_owned());
    last.completion.last_ai_message = Some("\0".to_owned());
    let commit = RunCommit {
        end: Some(last),
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    let over = get(&stores, "r1").await;
    assert_eq!(over.completion.last_ai_message.as_deref(), Some("\0"));
    assert!(over.error_name().starts_with("Value") && over.error_name().ends_with("Error"));
    assert!(
        over.error
            .is_some_and(|error| error.starts_with("bad byte ") && error.ends_with(" here"))
    );
}

/// The next run may be admitted as soon as the end is committed.
pub async fn end_releases_thread_slot(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = started(&stores, "r1", "t1").await;
    end(&stores, &first, RunStatus::Success).await;
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(None));
    assert_eq!(stores.query.standing(None, &Owner::None).await, Ok(vec![]));
    admit(&stores, new_run("r2", "t1")).await;
}

/// The store enforces the status machine.
pub async fn invalid_status_transitions_are_rejected(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(&stores, new_run("r1", "t1")).await;
    let refused = |result| matches!(result, Err(CommitError::Store(StoreError::Failed(_))));
    assert!(refused(
        stores
            .commit
            .commit(
                RunCommit {
                    end: Some(end_in(RunStatus::Success)),
                    ..commit_of(&record)
                }
                .into()
            )
            .await
    ));
    assert!(refused(
        stores
            .commit
            .commit(
                RunCommit {
                    end: Some(end_in(RunStatus::Starting)),
                    ..commit_of(&record)
                }
                .into()
            )
            .await
    ));
    assert!(refused(
        stores
            .commit
            .commit(
                RunCommit {
                    advance: Some(RunStatus::Starting),
                    ..commit_of(&record)
                }
                .into()
            )
            .await
    ));
    assert_eq!(get(&stores, "r1").await, record);
    let unknown = RunCommit {
        run_id: run("r9"),
        ..commit_of(&record)
    };
    assert_eq!(
        stores.commit.commit(unknown.into()).await,
        Err(CommitError::Gone(run("r9")))
    );
}

/// After a release, only the new attempt may write.
pub async fn released_run_gets_new_attempt(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    stores
        .commit
        .commit(
            RunCommit {
                advance: Some(RunStatus::Pending),
                ..commit_of(&record)
            }
            .into(),
        )
        .await
        .expect("released");
    let next = get(&stores, "r1").await;
    assert_eq!((next.status, next.attempt), (RunStatus::Pending, 2));
    assert!(matches!(
        stores.commit.commit(commit_of(&record).into()).await,
        Err(CommitError::OwnershipLost { attempt: 1, .. })
    ));
    let commit = RunCommit {
        advance: Some(RunStatus::Starting),
        ..commit_of(&next)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("claimed again");
}

/// A rollback retains the data from before the run.
pub async fn discarding_end_removes_only_checkpoints_of_the_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    for (n, id) in ["r1", "r2"].into_iter().enumerate() {
        let record = started(&stores, id, "t1").await;
        let write = checkpoint_write("t1", Some(id), n as u64 + 1, &mut state, &mut tail);
        let commit = RunCommit {
            checkpoints: vec![write],
            ..commit_of(&record)
        };
        stores
            .commit
            .commit(commit.into())
            .await
            .expect("committed");
        let mut last = end_in(RunStatus::Interrupted);
        last.discard_checkpoints = id == "r2";
        let commit = RunCommit {
            end: Some(last),
            ..commit_of(&record)
        };
        stores.commit.commit(commit.into()).await.expect("ended");
    }
    let left = stores
        .checkpoints
        .list_meta(
            &thread("t1"),
            &HistoryQuery {
                limit: 9,
                ..HistoryQuery::default()
            },
        )
        .await
        .expect("read");
    assert_eq!(
        left.into_iter()
            .map(|meta| meta.checkpoint_id)
            .collect::<Vec<_>>(),
        [checkpoint(1)]
    );
}

/// Only the run itself remains, without its texts, for callers that query its end.
pub async fn temporary_thread_is_deleted_with_its_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(&stores, on_temporary_thread(new_run("r1", "t1"))).await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let write = checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail);
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![write],
        ..commit_of(&record)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("committed");
    let mut last = end_in(RunStatus::Interrupted);
    last.completion.first_human_message = Some("hi".to_owned());
    last.completion.last_ai_message = Some("hello".to_owned());
    last.completion.total_tokens = 7;
    let commit = RunCommit {
        end: Some(last),
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    let over = get(&stores, "r1").await;
    assert_eq!(
        (over.status, over.kwargs),
        (RunStatus::Interrupted, json!({}).into())
    );
    assert_eq!(
        over.completion,
        RunCompletionData {
            total_tokens: 7,
            ..RunCompletionData::default()
        }
    );
    assert_eq!(
        stores
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    let again = on_existing_thread(new_run("r2", "t1"));
    assert_eq!(
        stores.create.admit(again).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
}
