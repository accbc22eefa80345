//! Contract of run stores: admission and cancellation.

mod commits;
mod queries;

use super::{
    RunStores, at, at_once, checkpoint, checkpoint_write, commit_of, end_in, message, new_run,
    on_existing_thread, run, thread,
};
use crate::runs::store::{AdmitError, Admitted, NewRun, RunCommit};
use crate::runs::{CancelAction, RunCompletionData, RunRecord, RunStatus};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};

pub use commits::{
    commit_of_older_attempt_is_fenced, commit_writes_events_checkpoints_and_status_atomically,
    concurrent_ends_store_exactly_one, discarding_end_removes_only_checkpoints_of_the_run,
    end_releases_thread_slot, end_with_control_characters_is_stored,
    invalid_status_transitions_are_rejected, released_run_gets_new_attempt,
    temporary_thread_is_deleted_with_its_run,
};
pub use queries::{
    deleting_a_threads_runs_removes_their_events, only_a_finished_run_is_deleted,
    runs_are_listed_newest_first_in_pages, runs_are_visible_to_their_owner_only,
};

/// Generates one test per guarantee of the run stores.
#[macro_export]
macro_rules! run_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::run_store]
            an_admitted_run_owns_its_thread
            concurrent_admissions_accept_exactly_one
            admissions_on_different_threads_are_independent
            duplicate_run_id_is_rejected_without_side_effects
            unknown_thread_is_rejected_unless_created
            thread_of_another_user_is_not_found
            admission_reports_head_of_thread
            first_cancel_wins
            commit_writes_events_checkpoints_and_status_atomically
            commit_of_older_attempt_is_fenced
            concurrent_ends_store_exactly_one
            end_with_control_characters_is_stored
            end_releases_thread_slot
            invalid_status_transitions_are_rejected
            released_run_gets_new_attempt
            discarding_end_removes_only_checkpoints_of_the_run
            temporary_thread_is_deleted_with_its_run
            runs_are_listed_newest_first_in_pages
            runs_are_visible_to_their_owner_only
            only_a_finished_run_is_deleted
            deleting_a_threads_runs_removes_their_events
        }
        $crate::promises! { $attrs $open, [$crate::testkit::run_queue]
            queued_runs_start_in_admission_order_one_at_a_time
            clock_skew_does_not_change_queue_order
            run_request_is_stored_until_run_ends
            delayed_run_does_not_block_other_runs
            concurrent_claims_return_run_once
            thread_is_busy_while_runs_are_queued
            interrupting_run_waits_for_active_run_only
            cancelled_queued_run_never_starts
            released_run_resumes_before_other_runs_of_thread
            cancelled_released_run_blocks_thread_until_its_end
            full_queue_rejects_admission
            user_at_limit_has_runs_queued_and_rejected
            concurrent_admissions_hold_user_limits
            temporary_thread_is_retained_while_runs_are_queued
            queued_run_is_listed_as_pending
            unfinished_runs_are_listed_for_their_owner
            large_request_is_returned_whole
            poisoned_run_retains_its_request
            other_ended_runs_have_no_request
            request_is_deleted_with_temporary_thread
        }
        $crate::promises! { $attrs $open, [$crate::testkit::repeated_commits]
            repeated_commit_is_written_once
            repeated_end_changes_nothing
            end_of_temporary_thread_may_be_repeated
            repeated_commit_of_lost_attempt_is_fenced
            unnumbered_commits_are_written_each_time
            checkpoint_with_missing_messages_is_rejected_atomically
        }
    };
}

async fn admit(stores: &RunStores, new: NewRun) -> RunRecord {
    stores.create.admit(new).await.expect("admitted").run
}

async fn started(stores: &RunStores, id: &str, on: &str) -> RunRecord {
    let run = admit(stores, new_run(id, on)).await;
    let commit = RunCommit {
        advance: Some(RunStatus::Running),
        ..commit_of(&run)
    };
    stores.commit.commit(commit.into()).await.expect("advanced");
    get(stores, id).await
}

async fn get(stores: &RunStores, id: &str) -> RunRecord {
    stores
        .query
        .get(&run(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

async fn end(stores: &RunStores, run: &RunRecord, status: RunStatus) {
    let commit = RunCommit {
        end: Some(end_in(status)),
        ..commit_of(run)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
}

/// The stored run equals the request, and the thread is busy.
pub async fn an_admitted_run_owns_its_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let new = new_run("r1", "t1");
    let record = admit(&stores, new.clone()).await;
    assert_eq!((record.status, record.attempt), (RunStatus::Starting, 1));
    assert_eq!(
        (&record.metadata, &record.kwargs),
        (
            &new.request().metadata,
            &new.request().presentation.request_echo
        )
    );
    assert_eq!(record.completion, RunCompletionData::default());
    assert_eq!(record.created_at, at(0));
    assert_eq!(get(&stores, "r1").await, record);
    assert_eq!(
        stores.query.active(&thread("t1")).await,
        Ok(Some(record.clone()))
    );
    assert_eq!(
        stores
            .query
            .standing(None, &Owner::None)
            .await
            .map(|runs| runs.into_iter().map(|run| run.run_id).collect()),
        Ok(vec![record.run_id])
    );
    assert_eq!(stores.query.active(&thread("t2")).await, Ok(None));
}

/// A thread executes one run at a time.
pub async fn concurrent_admissions_accept_exactly_one(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let results = at_once((0..50).map(|n| {
        let stores = stores.clone();
        async move { stores.create.admit(new_run(&format!("r{n}"), "t1")).await }
    }))
    .await;
    let won: Vec<_> = results.iter().flatten().collect();
    assert_eq!(won.len(), 1, "{results:?}");
    let active = won[0].run.run_id.clone();
    let busy = AdmitError::ThreadBusy {
        thread_id: thread("t1"),
        active,
    };
    assert_eq!(
        results
            .iter()
            .filter(|result| **result == Err(busy.clone()))
            .count(),
        49,
        "{results:?}"
    );
}

/// Active runs of one thread do not affect other threads.
pub async fn admissions_on_different_threads_are_independent(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let results = at_once((0..50).map(|n| {
        let stores = stores.clone();
        async move {
            stores
                .create
                .admit(new_run(&format!("r{n}"), &format!("t{n}")))
                .await
        }
    }))
    .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(
        stores
            .query
            .standing(None, &Owner::None)
            .await
            .map(|runs| runs.len()),
        Ok(50)
    );
}

/// A run id identifies one run, and a rejected admission has no effect.
pub async fn duplicate_run_id_is_rejected_without_side_effects(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, new_run("r1", "t1")).await;
    assert_eq!(
        stores.create.admit(new_run("r1", "t2")).await,
        Err(AdmitError::RunExists(run("r1")))
    );
    let on_t2 = on_existing_thread(new_run("r2", "t2"));
    assert_eq!(
        stores.create.admit(on_t2).await,
        Err(AdmitError::ThreadNotFound(thread("t2")))
    );
}

/// `if_not_exists` decides whether an unknown thread is created.
pub async fn unknown_thread_is_rejected_unless_created(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let rejecting = |id: &str| on_existing_thread(new_run(id, "t1"));
    assert_eq!(
        stores.create.admit(rejecting("r1")).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
    let first = admit(&stores, new_run("r1", "t1")).await;
    end(&stores, &first, RunStatus::Interrupted).await;
    admit(&stores, rejecting("r2")).await;
}

/// A user can neither run on the thread of another user nor detect it.
pub async fn thread_of_another_user_is_not_found(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = admit(&stores, new_run("r1", "t1")).await;
    end(&stores, &first, RunStatus::Interrupted).await;
    for user_id in [Some("bob".to_owned()), None] {
        let new = new_run("r2", "t1");
        for new in [new.clone(), on_existing_thread(new)] {
            let theirs = NewRun {
                user_id: user_id.clone(),
                ..new
            };
            assert_eq!(
                stores.create.admit(theirs).await,
                Err(AdmitError::ThreadNotFound(thread("t1")))
            );
        }
    }
}

/// A run that starts at once learns the newest checkpoint and the end of the log, also after a
/// checkpoint was deleted.
pub async fn admission_reports_head_of_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let admit = async |id: &str| {
        let admitted = stores.create.admit(new_run(id, "t1")).await;
        let Admitted { run, head, .. } = admitted.expect("admitted");
        end(&stores, &run, RunStatus::Error).await;
        head.map(|head| (head.checkpoint_id, head.log_tail))
    };
    assert_eq!(admit("r1").await, Some((None, 0)));
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let ids = SeededIds::new(3);
    for n in 1..=2 {
        let update = StateUpdate::messages([message(&format!("m{n}"), "text")]);
        state.apply(update, &ids).expect("applied");
        let mut write = checkpoint_write("t1", None, n, &mut state, &mut tail);
        write.meta.run_id = Some(run(&format!("writer{n}")));
        stores.checkpoints.put(write).await.expect("written");
        let expected = Some((Some(checkpoint(n)), n));
        assert_eq!(admit(&format!("after{n}")).await, expected);
    }
    let (thread, writer) = (thread("t1"), run("writer2"));
    let deleted = stores.checkpoints.delete_run(&thread, &writer).await;
    deleted.expect("deleted");
    assert_eq!(admit("r4").await, Some((Some(checkpoint(1)), 2)));
}

/// A second cancel does not change the first, and a finished run is not changed.
pub async fn first_cancel_wins(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let cancel = async |action| {
        stores
            .create
            .request_cancel(&run("r1"), action, at(9))
            .await
            .expect("written")
    };
    assert_eq!(cancel(CancelAction::Interrupt).await, None);
    let admitted = admit(&stores, new_run("r1", "t1")).await;
    assert_eq!(
        cancel(CancelAction::Rollback).await.map(|run| run.cancel),
        Some(Some(CancelAction::Rollback))
    );
    assert_eq!(
        cancel(CancelAction::Interrupt).await.map(|run| run.cancel),
        Some(Some(CancelAction::Rollback))
    );
    assert_eq!(
        get(&stores, "r1").await.cancel,
        Some(CancelAction::Rollback)
    );
    end(&stores, &admitted, RunStatus::Interrupted).await;
    let next = admit(&stores, new_run("r2", "t1")).await;
    end(&stores, &next, RunStatus::Interrupted).await;
    let over = stores
        .create
        .request_cancel(&run("r2"), CancelAction::Interrupt, at(9))
        .await
        .expect("written")
        .expect("known");
    assert_eq!((over.cancel, over.status), (None, RunStatus::Interrupted));
}
