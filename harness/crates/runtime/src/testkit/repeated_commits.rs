//! Contract of commits that are sent again because their reply was lost.

use super::{
    RunStores, all_events, checkpoint, checkpoint_write, commit_of, end_in, event, message,
    new_run, on_temporary_thread, run, thread,
};
use crate::checkpoint::{CheckpointWrite, HistoryQuery};
use crate::runs::RunStatus;
use crate::runs::store::{CommitError, RunCommit, StoreError};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Plans the write of checkpoint `n` of `r1` with the text `text`.
fn write_with_text(n: u64, text: &str, state: &mut ThreadState, tail: &mut u64) -> CheckpointWrite {
    state
        .apply(
            StateUpdate::messages([message(text, text)]),
            &SeededIds::new(n),
        )
        .expect("applied");
    checkpoint_write("t1", Some("r1"), n, state, tail)
}

async fn texts(stores: &RunStores) -> Vec<String> {
    let events = stores
        .events
        .list(&thread("t1"), &all_events(), &Owner::None)
        .await
        .expect("read");
    events
        .iter()
        .map(|event| {
            event.event.content["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}

async fn status(stores: &RunStores, id: &str) -> RunStatus {
    stores
        .query
        .get(&run(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
        .status
}

/// The step, its events and its checkpoints are written once; the next commit number is written as
/// usual.
pub async fn repeated_commit_is_written_once(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let steps = [(1, Some(RunStatus::Running), "a"), (2, None, "b")];
    for (batch, next, text) in steps {
        let checkpoints = vec![write_with_text(batch, text, &mut state, &mut tail)];
        let events = vec![event("t1", "r1", text)];
        let commit = RunCommit {
            batch,
            advance: next,
            events,
            checkpoints,
            ..commit_of(&record)
        };
        for _ in 0..3 {
            assert_eq!(stores.commit.commit(commit.clone().into()).await, Ok(()));
        }
    }
    assert_eq!(texts(&stores).await, ["a", "b"]);
    assert_eq!(status(&stores, "r1").await, RunStatus::Running);
    let list = stores
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
        list.into_iter()
            .map(|meta| meta.checkpoint_id)
            .collect::<Vec<_>>(),
        [checkpoint(2), checkpoint(1)]
    );
}

/// A repeated end has no effect, even after the next run has started on the thread.
pub async fn repeated_end_changes_nothing(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let end = RunCommit {
        batch: 3,
        events: vec![event("t1", "r1", "end")],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    assert_eq!(stores.commit.commit(end.clone().into()).await, Ok(()));
    assert_eq!(stores.commit.commit(end.clone().into()).await, Ok(()));
    let next = stores
        .create
        .admit(new_run("r2", "t1"))
        .await
        .expect("admitted")
        .run;
    assert_eq!(stores.commit.commit(end.clone().into()).await, Ok(()));
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(Some(next)));
    assert_eq!(
        stores
            .commit
            .commit(RunCommit { batch: 4, ..end }.into())
            .await,
        Err(CommitError::AlreadyTerminal(run("r1")))
    );
    assert_eq!(texts(&stores).await, ["end"]);
}

/// A repeated end does not restore deleted data.
pub async fn end_of_temporary_thread_may_be_repeated(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(on_temporary_thread(new_run("r1", "t1")))
        .await
        .expect("admitted")
        .run;
    let end = RunCommit {
        batch: 1,
        events: vec![event("t1", "r1", "end")],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    assert_eq!(stores.commit.commit(end.clone().into()).await, Ok(()));
    assert_eq!(stores.commit.commit(end.into()).await, Ok(()));
    assert_eq!(texts(&stores).await, [""; 0]);
}

/// Each attempt numbers its own commits.
pub async fn repeated_commit_of_lost_attempt_is_fenced(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let first = RunCommit {
        batch: 1,
        advance: Some(RunStatus::Running),
        ..commit_of(&record)
    };
    stores
        .commit
        .commit(first.clone().into())
        .await
        .expect("advanced");
    let back = RunCommit {
        batch: 2,
        advance: Some(RunStatus::Pending),
        ..commit_of(&record)
    };
    stores.commit.commit(back.into()).await.expect("released");
    assert_eq!(
        stores.commit.commit(first.clone().into()).await,
        Err(CommitError::OwnershipLost {
            run_id: run("r1"),
            attempt: 1
        })
    );
    let commit = RunCommit {
        attempt: 2,
        advance: Some(RunStatus::Starting),
        ..first
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("the first commit of the next attempt");
    assert_eq!(status(&stores, "r1").await, RunStatus::Starting);
}

/// Commits without a number are never treated as repetitions, and do not hide numbered ones.
pub async fn unnumbered_commits_are_written_each_time(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    for (batch, text) in [(1, "a"), (0, "b"), (0, "b"), (2, "c"), (1, "a")] {
        let commit = RunCommit {
            batch,
            events: vec![event("t1", "r1", text)],
            ..commit_of(&record)
        };
        assert_eq!(stores.commit.commit(commit.into()).await, Ok(()));
    }
    assert_eq!(texts(&stores).await, ["a", "b", "b", "c"]);
}

/// An earlier commit was lost, and an incomplete state must not become the state of the thread.
pub async fn checkpoint_with_missing_messages_is_rejected_atomically(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let lost = write_with_text(1, "lost", &mut state, &mut tail);
    let late = write_with_text(2, "late", &mut state, &mut tail);
    let commit = RunCommit {
        batch: 2,
        checkpoints: vec![late.clone()],
        ..commit_of(&record)
    };
    assert!(matches!(
        stores.commit.commit(commit.clone().into()).await,
        Err(CommitError::Store(StoreError::Failed(_)))
    ));
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    assert_eq!(
        stores
            .checkpoints
            .log_tail(&thread("t1"))
            .await
            .expect("read"),
        0
    );
    let commit = RunCommit {
        checkpoints: vec![lost, late],
        ..commit
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("nothing is missing now");
    let read = stores
        .checkpoints
        .get(&thread("t1"), None)
        .await
        .expect("read")
        .expect("there");
    assert_eq!((read.state, read.log_tail), (state, 2));
}
