//! Contract of queued and delayed runs.

mod large_requests;
mod poisoned;
mod preemption;
mod user_limits;

use super::{
    RunStores, USER, at, at_once, commit_of, end_in, new_run, node, on_existing_thread,
    on_temporary_thread, run, stored_request, thread, with_strategy,
};
use crate::runs::store::{AdmitError, Admitted, Claimed, NewRun, RunCommit, RunEnd, RunListQuery};
use crate::runs::{MultitaskStrategy, RunRecord, RunStatus, ThreadStatus, UserRunLimits};
use deerflow_core::actor_context::Owner;

pub use user_limits::{
    concurrent_admissions_hold_user_limits, user_at_limit_has_runs_queued_and_rejected,
};

pub use large_requests::large_request_is_returned_whole;
pub use poisoned::{
    other_ended_runs_have_no_request, poisoned_run_retains_its_request,
    request_is_deleted_with_temporary_thread,
};
pub use preemption::{
    cancelled_queued_run_never_starts, cancelled_released_run_blocks_thread_until_its_end,
    interrupting_run_waits_for_active_run_only, released_run_resumes_before_other_runs_of_thread,
};

fn queued(id: &str, on: &str, begins: i64) -> NewRun {
    NewRun {
        created_at: at(begins),
        ..with_strategy(new_run(id, on), MultitaskStrategy::Enqueue)
    }
}

async fn admit(stores: &RunStores, new: NewRun) -> Admitted {
    stores.create.admit(new).await.expect("admitted")
}

async fn claim(stores: &RunStores, now: i64) -> Option<Claimed> {
    stores
        .create
        .claim(&node("n1"), at(now), UserRunLimits::default())
        .await
        .expect("claimed")
}

async fn claimed(stores: &RunStores, now: i64) -> Option<String> {
    claim(stores, now)
        .await
        .map(|claimed| claimed.run.run_id.to_string())
}

async fn end(stores: &RunStores, id: &str, status: RunStatus) {
    let record = get(stores, id).await;
    let last = RunEnd {
        discard_checkpoints: record.status == RunStatus::Pending,
        ..end_in(status)
    };
    let commit = RunCommit {
        end: Some(last),
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
}

async fn get(stores: &RunStores, id: &str) -> RunRecord {
    stores
        .query
        .get(&run(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

/// Runs of a thread start first in, first out; threads do not wait for each other.
pub async fn queued_runs_start_in_admission_order_one_at_a_time(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for (n, id) in ["z", "y", "x"].into_iter().enumerate() {
        let first = admit(&stores, queued(&format!("{id}1"), "t1", n as i64)).await;
        let second = admit(&stores, queued(&format!("{id}2"), "t2", n as i64)).await;
        let expected = if n == 0 {
            RunStatus::Starting
        } else {
            RunStatus::Pending
        };
        assert_eq!(
            (first.run.status, second.run.status, first.displaced),
            (expected, expected, vec![])
        );
    }
    assert_eq!(claimed(&stores, 9).await, None);
    end(&stores, "z1", RunStatus::Error).await;
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("y1"));
    assert_eq!(claimed(&stores, 9).await, None);
    end(&stores, "z2", RunStatus::Error).await;
    end(&stores, "y1", RunStatus::Error).await;
    let mut both = [claimed(&stores, 9).await, claimed(&stores, 9).await];
    both.sort();
    assert_eq!(both, [Some("x1".to_owned()), Some("y2".to_owned())]);
}

/// The order of admission in the store is decisive, not the clocks of processes.
pub async fn clock_skew_does_not_change_queue_order(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    // The clock of one process is far ahead, that of another is behind. No run is delayed by that.
    for (id, clock) in [("ahead", 5_000), ("behind", 2), ("again", 4_000)] {
        let admitted = admit(
            &stores,
            NewRun {
                at: at(clock),
                ..queued(id, "t1", clock)
            },
        )
        .await;
        assert_eq!(admitted.run.status, RunStatus::Pending);
    }
    for (before, id) in [("r1", "ahead"), ("ahead", "behind"), ("behind", "again")] {
        end(&stores, before, RunStatus::Error).await;
        assert_eq!(stores.create.next_due(at(3)).await, Ok(None));
        assert_eq!(claimed(&stores, 3).await.as_deref(), Some(id));
    }
}

/// The store retains all data that a start requires as long as the run may be started again.
pub async fn run_request_is_stored_until_run_ends(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    let waiting = admit(&stores, queued("r2", "t1", 1)).await.run;
    assert_eq!(waiting, get(&stores, "r2").await);
    end(&stores, "r1", RunStatus::Error).await;
    let claimed = claim(&stores, 7).await.expect("claimable");
    assert_eq!(
        (
            claimed.run.status,
            claimed.run.updated_at,
            claimed.run.created_at
        ),
        (RunStatus::Starting, at(7), at(1))
    );
    assert_eq!(claimed.run, get(&stores, "r2").await);
    let (stored, expected) = (
        claimed.recipe.expect("readable"),
        stored_request("r2", "t1"),
    );
    assert_eq!(
        (stored.spec.input, stored.actor),
        (expected.spec.input.clone(), expected.actor)
    );
    let back = RunCommit {
        advance: Some(RunStatus::Pending),
        ..commit_of(&claimed.run)
    };
    stores.commit.commit(back.into()).await.expect("released");
    let again = claim(&stores, 8).await.expect("claimable again");
    assert_eq!((again.run.attempt, again.losses), (2, 0));
    assert_eq!(
        again.recipe.expect("still readable").spec.input,
        expected.spec.input
    );
}

/// A delayed run starts as soon as its time has come.
pub async fn delayed_run_does_not_block_other_runs(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    assert_eq!(
        admit(&stores, queued("late", "t1", 50)).await.run.status,
        RunStatus::Pending
    );
    assert_eq!(stores.create.next_due(at(1)).await, Ok(Some(at(50))));
    let now = NewRun {
        at: at(1),
        ..queued("now", "t1", 1)
    };
    assert_eq!(admit(&stores, now).await.run.status, RunStatus::Starting);
    assert_eq!(claimed(&stores, 60).await, None);
    end(&stores, "now", RunStatus::Error).await;
    assert_eq!(claimed(&stores, 49).await, None);
    assert_eq!(claimed(&stores, 50).await.as_deref(), Some("late"));
    assert_eq!(stores.create.next_due(at(1)).await, Ok(None));
}

/// Of several concurrent claims, exactly one returns the run.
pub async fn concurrent_claims_return_run_once(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 0..4 {
        admit(&stores, queued(&format!("r{n}"), "t1", 50 + n)).await;
    }
    let claims = at_once((0..20).map(|_| {
        let stores = stores.clone();
        async move { claimed(&stores, 60).await }
    }))
    .await;
    assert_eq!(claims.into_iter().flatten().collect::<Vec<_>>(), ["r0"]);
}

/// After the last run, the thread has the status of its end.
pub async fn thread_is_busy_while_runs_are_queued(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    end(&stores, "r1", RunStatus::Error).await;
    assert_eq!(
        stores
            .query
            .active(&thread("t1"))
            .await
            .map(|run| run.map(|run| run.run_id)),
        Ok(Some(run("r2")))
    );
    let refused = stores.create.admit(new_run("r3", "t1")).await;
    assert_eq!(
        refused,
        Err(AdmitError::ThreadBusy {
            thread_id: thread("t1"),
            active: run("r2")
        })
    );
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("r2"));
    end(&stores, "r2", RunStatus::Error).await;
    assert_eq!(stores.query.active(&thread("t1")).await, Ok(None));
}

/// The queue of a thread is bounded.
pub async fn full_queue_rejects_admission(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let of_three = |id: &str| NewRun {
        most_waiting: 3,
        ..queued(id, "t1", 0)
    };
    for n in 0..=3 {
        admit(&stores, of_three(&format!("r{n}"))).await;
    }
    assert_eq!(
        stores.create.admit(of_three("more")).await,
        Err(AdmitError::QueueFull(thread("t1")))
    );
    assert_eq!(stores.query.get(&run("more"), &Owner::None).await, Ok(None));
}

/// The last run deletes the thread.
pub async fn temporary_thread_is_retained_while_runs_are_queued(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, on_temporary_thread(queued("r1", "t1", 0))).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    end(&stores, "r1", RunStatus::Error).await;
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("r2"));
    end(&stores, "r2", RunStatus::Error).await;
    let reject = on_existing_thread(queued("r3", "t1", 2));
    assert_eq!(
        stores.create.admit(reject).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
}

/// A starting run is listed as pending too: clients know no other status.
pub async fn queued_run_is_listed_as_pending(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    let pending = RunListQuery {
        limit: 9,
        status: Some(RunStatus::Pending),
        ..RunListQuery::default()
    };
    let unfinished = stores
        .query
        .list(&thread("t1"), &pending, &Owner::None)
        .await
        .expect("read");
    assert_eq!(
        unfinished
            .iter()
            .map(|run| run.run_id.as_str())
            .collect::<Vec<_>>(),
        ["r2", "r1"]
    );
    assert_eq!(
        ThreadStatus::after(unfinished[0].status, false),
        ThreadStatus::Busy
    );
}

/// Runs are listed oldest first, of all threads or of one; without an owner filter, those of all
/// users.
pub async fn unfinished_runs_are_listed_for_their_owner(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let record = admit(
        &stores,
        NewRun {
            created_at: at(3),
            at: at(3),
            ..new_run("r1", "t1")
        },
    )
    .await
    .run;
    let end = Some(end_in(RunStatus::Interrupted));
    let commit = RunCommit {
        end,
        ..commit_of(&record)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    for (id, on, n) in [("r3", "t3", 3), ("r2", "t2", 2)] {
        admit(
            &stores,
            NewRun {
                created_at: at(n),
                at: at(n),
                ..new_run(id, on)
            },
        )
        .await;
    }
    admit(
        &stores,
        NewRun {
            user_id: Some("bob".to_owned()),
            ..new_run("theirs", "t4")
        },
    )
    .await;
    let standing = async |on: Option<&str>, owner: Owner| {
        let unfinished = stores
            .query
            .standing(on.map(thread).as_ref(), &owner)
            .await
            .expect("read");
        unfinished
            .into_iter()
            .map(|run| {
                (
                    run.run_id.to_string(),
                    run.thread_id.to_string(),
                    run.status,
                    run.created_at,
                )
            })
            .collect::<Vec<_>>()
    };
    let of = |id: &str, on: &str, n| (id.to_owned(), on.to_owned(), RunStatus::Starting, at(n));
    let mine = || Owner::User(USER.to_owned());
    assert_eq!(
        standing(None, mine()).await,
        [of("r2", "t2", 2), of("r3", "t3", 3)]
    );
    assert_eq!(standing(Some("t3"), mine()).await, [of("r3", "t3", 3)]);
    assert_eq!(standing(Some("t4"), mine()).await, []);
    assert_eq!(standing(None, Owner::None).await.len(), 3);
}
