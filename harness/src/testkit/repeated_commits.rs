//! What stores promise about a commit that is sent again because nobody heard how it ended.

use super::{
    RunStores, all_events, checkpoint, checkpoint_write, commit_of, end_in, event, message,
    new_run, run, thread,
};
use crate::ids::SeededIds;
use crate::runtime::actor_context::Owner;
use crate::runtime::checkpoint::{CheckpointWrite, HistoryQuery};
use crate::runtime::runs::RunStatus;
use crate::runtime::runs::store::{CommitError, NewRun, RunCommit, StoreError};
use crate::state::{StateUpdate, ThreadState};

/// The write of checkpoint `n` of `r1`, which says `text`.
fn says(n: u64, text: &str, state: &mut ThreadState, tail: &mut u64) -> CheckpointWrite {
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

/// Step, events and checkpoints of it; the next number is written as usual.
pub async fn a_commit_sent_again_is_written_once(open: impl AsyncFn() -> RunStores) {
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
        let checkpoints = vec![says(batch, text, &mut state, &mut tail)];
        let events = vec![event("t1", "r1", text)];
        let commit = RunCommit {
            batch,
            advance: next,
            events,
            checkpoints,
            ..commit_of(&record)
        };
        for _ in 0..3 {
            assert_eq!(stores.commit.commit(commit.clone()).await, Ok(()));
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

/// Not even after the next run took the thread.
pub async fn an_end_sent_again_changes_nothing(open: impl AsyncFn() -> RunStores) {
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
    assert_eq!(stores.commit.commit(end.clone()).await, Ok(()));
    assert_eq!(stores.commit.commit(end.clone()).await, Ok(()));
    let next = stores
        .create
        .admit(new_run("r2", "t1"))
        .await
        .expect("admitted")
        .run;
    assert_eq!(stores.commit.commit(end.clone()).await, Ok(()));
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(Some(next)));
    assert_eq!(
        stores.commit.commit(RunCommit { batch: 4, ..end }).await,
        Err(CommitError::AlreadyTerminal(run("r1")))
    );
    assert_eq!(texts(&stores).await, ["end"]);
}

/// What was gone stays gone.
pub async fn a_temporary_threads_end_may_be_sent_again(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = stores
        .create
        .admit(NewRun {
            temporary_thread: true,
            ..new_run("r1", "t1")
        })
        .await
        .expect("admitted")
        .run;
    let end = RunCommit {
        batch: 1,
        events: vec![event("t1", "r1", "end")],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    assert_eq!(stores.commit.commit(end.clone()).await, Ok(()));
    assert_eq!(stores.commit.commit(end).await, Ok(()));
    assert_eq!(texts(&stores).await, [""; 0]);
}

/// Each attempt counts its own commits.
pub async fn a_commit_sent_again_by_who_lost_the_run_is_refused(open: impl AsyncFn() -> RunStores) {
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
    stores.commit.commit(first.clone()).await.expect("advanced");
    let back = RunCommit {
        batch: 2,
        advance: Some(RunStatus::Pending),
        ..commit_of(&record)
    };
    stores.commit.commit(back).await.expect("given back");
    assert_eq!(
        stores.commit.commit(first.clone()).await,
        Err(CommitError::OwnershipLost {
            run_id: run("r1"),
            attempt: 1
        })
    );
    stores
        .commit
        .commit(RunCommit {
            attempt: 2,
            advance: Some(RunStatus::Starting),
            ..first
        })
        .await
        .expect("the first of the next attempt");
    assert_eq!(status(&stores, "r1").await, RunStatus::Starting);
}

/// And do not hide numbered ones.
pub async fn commits_without_a_number_are_written_each_time(open: impl AsyncFn() -> RunStores) {
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
        assert_eq!(stores.commit.commit(commit).await, Ok(()));
    }
    assert_eq!(texts(&stores).await, ["a", "b", "b", "c"]);
}

/// A commit before it was lost: a state with holes must not be taken for the thread's.
pub async fn a_checkpoint_over_missing_messages_is_refused_as_a_whole(
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
    let lost = says(1, "lost", &mut state, &mut tail);
    let late = says(2, "late", &mut state, &mut tail);
    let commit = RunCommit {
        batch: 2,
        checkpoints: vec![late.clone()],
        ..commit_of(&record)
    };
    assert!(matches!(
        stores.commit.commit(commit.clone()).await,
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
    stores
        .commit
        .commit(RunCommit {
            checkpoints: vec![lost, late],
            ..commit
        })
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
