//! Contract of queued runs that are displaced, cancelled or released.

use super::{admit, claimed, end, get, queued};
use crate::runs::store::{AdmitError, NewRun, RunCommit};
use crate::runs::{CancelAction, MultitaskStrategy, RunStatus};
use crate::testkit::{
    RunStores, at, checkpoint_write, commit_of, new_run, run, thread, with_strategy,
};
use deerflow_core::actor_context::Owner;
use deerflow_core::state::ThreadState;

/// Queued runs are cancelled too, and the new run follows immediately if no run is active.
pub async fn interrupting_run_waits_for_active_run_only(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    let new = NewRun {
        at: at(2),
        ..queued("r3", "t1", 2)
    };
    let third = admit(&stores, with_strategy(new, MultitaskStrategy::Interrupt)).await;
    assert_eq!(third.run.status, RunStatus::Pending);
    let mut displaced: Vec<_> = third
        .displaced
        .iter()
        .map(|run| (run.run_id.to_string(), run.status, run.cancel))
        .collect();
    displaced.sort_by(|one, other| one.0.cmp(&other.0));
    let stop = Some(CancelAction::Interrupt);
    assert_eq!(
        displaced,
        [
            ("r1".to_owned(), RunStatus::Starting, stop),
            ("r2".to_owned(), RunStatus::Pending, stop)
        ]
    );
    assert_eq!(get(&stores, "r1").await.cancel, stop);
    end(&stores, "r2", RunStatus::Interrupted).await;
    assert_eq!(claimed(&stores, 9).await, None);
    end(&stores, "r1", RunStatus::Interrupted).await;
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("r3"));
    admit(&stores, queued("r4", "t2", 50)).await;
    let fifth = admit(
        &stores,
        with_strategy(queued("r5", "t2", 0), MultitaskStrategy::Rollback),
    )
    .await;
    assert_eq!(
        (fifth.run.status, fifth.displaced.len()),
        (RunStatus::Starting, 1)
    );
}

/// A cancelled run does not start, even if its end is committed later.
pub async fn cancelled_queued_run_never_starts(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 50)).await;
    let cancelled = stores
        .create
        .request_cancel(&run("r1"), CancelAction::Interrupt, at(3))
        .await
        .expect("written")
        .expect("known");
    assert_eq!(
        (cancelled.status, cancelled.cancel),
        (RunStatus::Pending, Some(CancelAction::Interrupt))
    );
    assert_eq!(
        (
            claimed(&stores, 60).await,
            stores.create.next_due(at(0)).await
        ),
        (None, Ok(None))
    );
    assert_eq!(
        stores
            .query
            .standing(None, &Owner::None)
            .await
            .map(|runs| runs.len()),
        Ok(1)
    );
    end(&stores, "r1", RunStatus::Interrupted).await;
    assert_eq!(stores.query.standing(None, &Owner::None).await, Ok(vec![]));
}

async fn release(stores: &RunStores, id: &str) {
    let commit = commit_of(&get(stores, id).await).releasing();
    stores.commit.commit(commit.into()).await.expect("released");
}

/// A released run also resumes before earlier runs that waited for their start time: its steps are
/// the thread's newest.
pub async fn released_run_resumes_before_other_runs_of_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("late", "t1", 50)).await;
    admit(
        &stores,
        NewRun {
            at: at(1),
            ..queued("r1", "t1", 1)
        },
    )
    .await;
    release(&stores, "r1").await;
    assert_eq!(
        stores
            .query
            .active(&thread("t1"))
            .await
            .map(|run| run.map(|run| run.run_id)),
        Ok(Some(run("r1")))
    );
    let refused = stores.create.admit(new_run("r2", "t1")).await;
    assert_eq!(
        refused,
        Err(AdmitError::ThreadBusy {
            thread_id: thread("t1"),
            active: run("r1")
        })
    );
    assert_eq!(claimed(&stores, 60).await.as_deref(), Some("r1"));
    assert_eq!(claimed(&stores, 60).await, None);
    end(&stores, "r1", RunStatus::Error).await;
    assert_eq!(claimed(&stores, 60).await.as_deref(), Some("late"));
}

/// No other run of the thread can be claimed until the cancelled run has ended. Its end deletes the
/// steps of a rolled-back run.
pub async fn cancelled_released_run_blocks_thread_until_its_end(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(&stores, queued("r1", "t1", 0)).await.run;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let checkpoints = vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)];
    stores
        .commit
        .commit(
            RunCommit {
                checkpoints,
                ..commit_of(&record)
            }
            .releasing()
            .into(),
        )
        .await
        .expect("released");
    let undoing = NewRun {
        at: at(1),
        ..queued("r2", "t1", 1)
    };
    let undoing = admit(&stores, with_strategy(undoing, MultitaskStrategy::Rollback)).await;
    let displaced: Vec<_> = undoing
        .displaced
        .iter()
        .map(|run| (run.run_id.as_str(), run.status, run.cancel))
        .collect();
    assert_eq!(undoing.run.status, RunStatus::Pending);
    assert_eq!(
        displaced,
        [("r1", RunStatus::Pending, Some(CancelAction::Rollback))]
    );
    assert_eq!(
        admit(
            &stores,
            NewRun {
                at: at(2),
                ..queued("r3", "t1", 2)
            }
        )
        .await
        .run
        .status,
        RunStatus::Pending
    );
    assert_eq!(claimed(&stores, 9).await, None);
    end(&stores, "r1", RunStatus::Error).await;
    assert!(
        stores
            .checkpoints
            .get(&thread("t1"), None)
            .await
            .expect("read")
            .is_none()
    );
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("r2"));
}
