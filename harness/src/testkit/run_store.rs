//! What the stores of runs promise.

use serde_json::json;

use super::{
    RunStores, USER, all_events, at, at_once, checkpoint, checkpoint_write, commit_of, end_in,
    event, message, new_run, object, run, thread,
};
use crate::runtime::actor_context::{ActorContext, NoActor, Owner, scope};
use crate::runtime::checkpoint::HistoryQuery;
use crate::runtime::runs::store::{
    AdmitError, CommitError, NewRun, RunCommit, RunListQuery, StoreError,
};
use crate::runtime::runs::{CancelAction, IfNotExists, RunCompletionData, RunRecord, RunStatus};
use crate::state::{StateUpdate, ThreadState};

/// One test per promise of the run stores.
#[macro_export]
macro_rules! run_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::run_store]
            an_admitted_run_owns_its_thread
            of_many_admissions_at_once_exactly_one_wins
            admissions_on_different_threads_do_not_hinder_each_other
            a_taken_run_id_is_refused_and_leaves_no_trace
            an_unknown_thread_is_refused_unless_it_shall_be_made
            another_users_thread_looks_as_if_it_did_not_exist
            the_first_cancel_stands
            a_commit_writes_events_checkpoints_and_status_together
            a_commit_of_an_older_attempt_writes_nothing
            the_end_is_written_once_under_a_race
            an_end_with_odd_text_is_written
            the_end_frees_the_slot
            illegal_steps_are_refused
            a_run_given_back_gets_a_new_attempt
            a_discarding_end_removes_only_the_runs_own_checkpoints
            a_temporary_thread_goes_with_its_run
            runs_are_listed_newest_first_in_pages
            rows_are_seen_by_their_owner_only
            only_a_finished_run_is_deleted
            deleting_a_threads_runs_removes_their_events
        }
        $crate::promises! { $attrs $open, [$crate::testkit::run_queue]
            runs_begin_one_at_a_time_in_the_order_of_their_making
            clocks_that_disagree_do_not_change_whose_turn_it_is
            a_run_that_waits_is_written_down_until_it_is_over
            a_delayed_run_waits_for_its_time_and_lets_others_before
            of_many_claims_at_once_exactly_one_gets_a_run
            the_thread_is_busy_until_nothing_waits
            who_displaces_waits_for_the_one_at_work_only
            a_run_that_was_told_to_stop_never_begins
            a_run_that_was_given_back_goes_on_before_any_other_of_its_thread
            nobody_begins_beside_a_run_that_was_given_back_and_told_to_stop
            a_queue_has_an_end
            a_temporary_thread_stays_while_a_run_waits_on_it
            a_run_that_waits_is_listed_as_pending
            where_unfinished_runs_stand_is_told_to_their_owner
        }
        $crate::promises! { $attrs $open, [$crate::testkit::repeated_commits]
            a_commit_sent_again_is_written_once
            an_end_sent_again_changes_nothing
            a_temporary_threads_end_may_be_sent_again
            a_commit_sent_again_by_who_lost_the_run_is_refused
            commits_without_a_number_are_written_each_time
            a_checkpoint_over_missing_messages_is_refused_as_a_whole
        }
    };
}

async fn admit(stores: &RunStores, new: NewRun) -> RunRecord {
    stores.create.admit(new).await.expect("admitted").run
}

async fn started(stores: &RunStores, id: &str, on: &str) -> RunRecord {
    let run = admit(stores, new_run(id, on)).await;
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Running),
            ..commit_of(&run)
        })
        .await
        .expect("advanced");
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
    stores
        .commit
        .commit(RunCommit {
            end: Some(end_in(status)),
            ..commit_of(run)
        })
        .await
        .expect("ended");
}

/// What was asked for is what is stored, and the thread is busy with it.
pub async fn an_admitted_run_owns_its_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let new = new_run("r1", "t1");
    let record = admit(&stores, new.clone()).await;
    assert_eq!((record.status, record.attempt), (RunStatus::Starting, 1));
    assert_eq!(
        (&record.metadata, &record.kwargs),
        (&new.metadata, &new.kwargs)
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

/// The thread has one slot, whoever asks first.
pub async fn of_many_admissions_at_once_exactly_one_wins(open: impl AsyncFn() -> RunStores) {
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

/// Slots are per thread.
pub async fn admissions_on_different_threads_do_not_hinder_each_other(
    open: impl AsyncFn() -> RunStores,
) {
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

/// A run id names one run, and a refused admission changes nothing.
pub async fn a_taken_run_id_is_refused_and_leaves_no_trace(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, new_run("r1", "t1")).await;
    assert_eq!(
        stores.create.admit(new_run("r1", "t2")).await,
        Err(AdmitError::RunExists(run("r1")))
    );
    let on_t2 = NewRun {
        if_not_exists: IfNotExists::Reject,
        ..new_run("r2", "t2")
    };
    assert_eq!(
        stores.create.admit(on_t2).await,
        Err(AdmitError::ThreadNotFound(thread("t2")))
    );
}

/// `if_not_exists` decides.
pub async fn an_unknown_thread_is_refused_unless_it_shall_be_made(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let rejecting = |id: &str| NewRun {
        if_not_exists: IfNotExists::Reject,
        ..new_run(id, "t1")
    };
    assert_eq!(
        stores.create.admit(rejecting("r1")).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
    let first = admit(&stores, new_run("r1", "t1")).await;
    end(&stores, &first, RunStatus::Interrupted).await;
    admit(&stores, rejecting("r2")).await;
}

/// A user cannot run on, or learn of, the thread of another.
pub async fn another_users_thread_looks_as_if_it_did_not_exist(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = admit(&stores, new_run("r1", "t1")).await;
    end(&stores, &first, RunStatus::Interrupted).await;
    for user_id in [Some("bob".to_owned()), None] {
        for if_not_exists in [IfNotExists::Create, IfNotExists::Reject] {
            let theirs = NewRun {
                user_id: user_id.clone(),
                if_not_exists,
                ..new_run("r2", "t1")
            };
            assert_eq!(
                stores.create.admit(theirs).await,
                Err(AdmitError::ThreadNotFound(thread("t1")))
            );
        }
    }
}

/// A second cancel does not change the first, and none reaches a run that is over.
pub async fn the_first_cancel_stands(open: impl AsyncFn() -> RunStores) {
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

/// All of a commit is there when it returns.
pub async fn a_commit_writes_events_checkpoints_and_status_together(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    assert_eq!(record.status, RunStatus::Running);
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let ids = crate::ids::SeededIds::new(1);
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
    stores.commit.commit(commit).await.expect("committed");
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
            .map(|event| (event.seq, &event.event.content))
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

/// Fencing: who lost the run changes nothing any more.
pub async fn a_commit_of_an_older_attempt_writes_nothing(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Pending),
            ..commit_of(&record)
        })
        .await
        .expect("given back");
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let stale = RunCommit {
        events: vec![event("t1", "r1", "late")],
        checkpoints: vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&record)
    };
    assert_eq!(
        stores.commit.commit(stale).await,
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

/// Terminal once.
pub async fn the_end_is_written_once_under_a_race(open: impl AsyncFn() -> RunStores) {
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
        async move { (ends[n % 4], stores.commit.commit(commit).await) }
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

/// What a model or provider said may hold any character; the end is written all the same.
pub async fn an_end_with_odd_text_is_written(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let mut last = end_in(RunStatus::Error);
    last.error = Some("bad byte \0 here".to_owned());
    last.error_name = Some("Value\0Error".to_owned());
    last.title = Some("\0".to_owned());
    last.completion.last_ai_message = Some("\0".to_owned());
    stores
        .commit
        .commit(RunCommit {
            end: Some(last),
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    let over = get(&stores, "r1").await;
    assert_eq!(over.completion.last_ai_message.as_deref(), Some("\0"));
    assert!(over.error_name().starts_with("Value") && over.error_name().ends_with("Error"));
    assert!(
        over.error
            .is_some_and(|error| error.starts_with("bad byte ") && error.ends_with(" here"))
    );
}

/// The next run may come as soon as the end is committed.
pub async fn the_end_frees_the_slot(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let first = started(&stores, "r1", "t1").await;
    end(&stores, &first, RunStatus::Success).await;
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(None));
    assert_eq!(stores.query.standing(None, &Owner::None).await, Ok(vec![]));
    admit(&stores, new_run("r2", "t1")).await;
}

/// The status machine holds in the store too.
pub async fn illegal_steps_are_refused(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(&stores, new_run("r1", "t1")).await;
    let refused = |result| matches!(result, Err(CommitError::Store(StoreError::Failed(_))));
    assert!(refused(
        stores
            .commit
            .commit(RunCommit {
                end: Some(end_in(RunStatus::Success)),
                ..commit_of(&record)
            })
            .await
    ));
    assert!(refused(
        stores
            .commit
            .commit(RunCommit {
                end: Some(end_in(RunStatus::Starting)),
                ..commit_of(&record)
            })
            .await
    ));
    assert!(refused(
        stores
            .commit
            .commit(RunCommit {
                advance: Some(RunStatus::Starting),
                ..commit_of(&record)
            })
            .await
    ));
    assert_eq!(get(&stores, "r1").await, record);
    let unknown = RunCommit {
        run_id: run("r9"),
        ..commit_of(&record)
    };
    assert_eq!(
        stores.commit.commit(unknown).await,
        Err(CommitError::Gone(run("r9")))
    );
}

/// After it, only the new attempt may write.
pub async fn a_run_given_back_gets_a_new_attempt(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Pending),
            ..commit_of(&record)
        })
        .await
        .expect("given back");
    let next = get(&stores, "r1").await;
    assert_eq!((next.status, next.attempt), (RunStatus::Pending, 2));
    assert!(matches!(
        stores.commit.commit(commit_of(&record)).await,
        Err(CommitError::OwnershipLost { attempt: 1, .. })
    ));
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Starting),
            ..commit_of(&next)
        })
        .await
        .expect("taken again");
}

/// A rollback leaves what was there before the run.
pub async fn a_discarding_end_removes_only_the_runs_own_checkpoints(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    for (n, id) in ["r1", "r2"].into_iter().enumerate() {
        let record = started(&stores, id, "t1").await;
        let write = checkpoint_write("t1", Some(id), n as u64 + 1, &mut state, &mut tail);
        stores
            .commit
            .commit(RunCommit {
                checkpoints: vec![write],
                ..commit_of(&record)
            })
            .await
            .expect("committed");
        let mut last = end_in(RunStatus::Interrupted);
        last.discard_checkpoints = id == "r2";
        stores
            .commit
            .commit(RunCommit {
                end: Some(last),
                ..commit_of(&record)
            })
            .await
            .expect("ended");
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

/// Nothing of it stays but the run itself, without what was said, for those who ask how it ended.
pub async fn a_temporary_thread_goes_with_its_run(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(
        &stores,
        NewRun {
            temporary_thread: true,
            ..new_run("r1", "t1")
        },
    )
    .await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let write = checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail);
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![write],
        ..commit_of(&record)
    };
    stores.commit.commit(commit).await.expect("committed");
    let mut last = end_in(RunStatus::Interrupted);
    last.completion.first_human_message = Some("hi".to_owned());
    last.completion.last_ai_message = Some("hello".to_owned());
    last.completion.total_tokens = 7;
    stores
        .commit
        .commit(RunCommit {
            end: Some(last),
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    let over = get(&stores, "r1").await;
    assert_eq!(
        (over.status, over.kwargs),
        (RunStatus::Interrupted, json!({}))
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
    let again = NewRun {
        if_not_exists: IfNotExists::Reject,
        ..new_run("r2", "t1")
    };
    assert_eq!(
        stores.create.admit(again).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
}

/// With offset, limit and status.
pub async fn runs_are_listed_newest_first_in_pages(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 0..5 {
        let record = admit(
            &stores,
            NewRun {
                created_at: at(n),
                ..new_run(&format!("r{n}"), "t1")
            },
        )
        .await;
        end(
            &stores,
            &record,
            if n % 2 == 0 {
                RunStatus::Interrupted
            } else {
                RunStatus::Error
            },
        )
        .await;
    }
    let names = async |limit, offset, status| -> Vec<String> {
        let query = RunListQuery {
            limit,
            offset,
            status,
        };
        let runs = stores
            .query
            .list(&thread("t1"), &query, &Owner::None)
            .await
            .expect("read");
        runs.into_iter().map(|run| run.run_id.to_string()).collect()
    };
    assert_eq!(names(2, 0, None).await, ["r4", "r3"]);
    assert_eq!(names(2, 4, None).await, ["r0"]);
    assert_eq!(names(9, 0, Some(RunStatus::Error)).await, ["r3", "r1"]);
    assert_eq!(names(0, 0, None).await, [""; 0]);
}

/// Rows of nobody are seen by maintenance only.
pub async fn rows_are_seen_by_their_owner_only(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, new_run("r1", "t1")).await;
    admit(
        &stores,
        NewRun {
            user_id: None,
            ..new_run("r2", "t2")
        },
    )
    .await;
    let sees = async |id: &str, owner: &Owner| {
        stores
            .query
            .get(&run(id), owner)
            .await
            .expect("read")
            .is_some()
    };
    let (ann, bob) = (Owner::User(USER.to_owned()), Owner::User("bob".to_owned()));
    assert_eq!(
        (
            sees("r1", &ann).await,
            sees("r1", &bob).await,
            sees("r1", &Owner::None).await
        ),
        (true, false, true)
    );
    assert_eq!(
        (sees("r2", &ann).await, sees("r2", &Owner::None).await),
        (false, true)
    );
    let all = RunListQuery {
        limit: 9,
        ..RunListQuery::default()
    };
    assert_eq!(
        stores.query.list(&thread("t1"), &all, &bob).await,
        Ok(vec![])
    );
    assert_eq!(
        stores.query.get(&run("r1"), &Owner::Auto).await,
        Err(StoreError::NoActor(NoActor))
    );
    scope(ActorContext::user(USER), async {
        assert!(sees("r1", &Owner::Auto).await)
    })
    .await;
}

/// With its events and checkpoints; a running one stays.
pub async fn only_a_finished_run_is_deleted(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = started(&stores, "r1", "t1").await;
    let (mut state, mut tail) = (ThreadState::default(), 0);
    let write = checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail);
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![write],
        ..commit_of(&record)
    };
    stores.commit.commit(commit).await.expect("committed");
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(false));
    end(&stores, &record, RunStatus::Success).await;
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(false));
    assert_eq!(stores.query.get(&run("r1"), &Owner::None).await, Ok(None));
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
    assert_eq!(
        stores.commit.commit(commit_of(&record)).await,
        Err(CommitError::Gone(run("r1")))
    );
}

/// Other threads keep theirs.
pub async fn deleting_a_threads_runs_removes_their_events(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for (id, on) in [("r1", "t1"), ("r2", "t2")] {
        let record = started(&stores, id, on).await;
        stores
            .commit
            .commit(RunCommit {
                events: vec![event(on, id, "a")],
                ..commit_of(&record)
            })
            .await
            .expect("committed");
        end(&stores, &record, RunStatus::Success).await;
    }
    stores
        .delete
        .delete_thread(&thread("t1"))
        .await
        .expect("deleted");
    assert_eq!(stores.query.get(&run("r1"), &Owner::None).await, Ok(None));
    assert_eq!(
        stores
            .events
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await,
        Ok(vec![])
    );
    assert!(
        stores
            .query
            .get(&run("r2"), &Owner::None)
            .await
            .expect("read")
            .is_some()
    );
    assert_eq!(
        stores
            .events
            .list(&thread("t2"), &all_events(), &Owner::None)
            .await
            .map(|events| events.len()),
        Ok(1)
    );
}
