//! What stores promise about runs that wait for their turn or their time.

use super::{
    RunStores, USER, at, at_once, checkpoint_write, commit_of, end_in, new_run, node, recipe, run,
    thread,
};
use crate::runtime::actor_context::Owner;
use crate::runtime::runs::store::{
    AdmitError, Admitted, Claimed, NewRun, RunCommit, RunEnd, RunListQuery,
};
use crate::runtime::runs::{CancelAction, MultitaskStrategy, RunRecord, RunStatus, ThreadStatus};
use crate::state::ThreadState;

fn queued(id: &str, on: &str, begins: i64) -> NewRun {
    NewRun {
        multitask: MultitaskStrategy::Enqueue,
        created_at: at(begins),
        ..new_run(id, on)
    }
}

async fn admit(stores: &RunStores, new: NewRun) -> Admitted {
    stores.create.admit(new).await.expect("admitted")
}

async fn claim(stores: &RunStores, now: i64) -> Option<Claimed> {
    stores
        .create
        .claim(&node("n1"), at(now))
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
    stores
        .commit
        .commit(RunCommit {
            end: Some(last),
            ..commit_of(&record)
        })
        .await
        .expect("ended");
}

async fn get(stores: &RunStores, id: &str) -> RunRecord {
    stores
        .query
        .get(&run(id), &Owner::None)
        .await
        .expect("read")
        .expect("there")
}

/// First in, first out per thread; threads do not wait for one another.
pub async fn runs_begin_one_at_a_time_in_the_order_of_their_making(
    open: impl AsyncFn() -> RunStores,
) {
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

/// The order of admission is the store's own.
pub async fn clocks_that_disagree_do_not_change_whose_turn_it_is(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    // One process is far ahead, another behind; neither run is delayed.
    for (id, clock) in [("ahead", 5_000), ("behind", 2), ("again", 4_000)] {
        let made = admit(
            &stores,
            NewRun {
                at: at(clock),
                ..queued(id, "t1", clock)
            },
        )
        .await;
        assert_eq!(made.run.status, RunStatus::Pending);
    }
    for (before, id) in [("r1", "ahead"), ("ahead", "behind"), ("behind", "again")] {
        end(&stores, before, RunStatus::Error).await;
        assert_eq!(stores.create.next_due(at(3)).await, Ok(None));
        assert_eq!(claimed(&stores, 3).await.as_deref(), Some(id));
    }
}

/// All that its start needs, as long as it may have to start again.
pub async fn a_run_that_waits_is_written_down_until_it_is_over(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    let waiting = admit(&stores, queued("r2", "t1", 1)).await.run;
    assert_eq!(waiting, get(&stores, "r2").await);
    end(&stores, "r1", RunStatus::Error).await;
    let claimed = claim(&stores, 7).await.expect("its turn");
    assert_eq!(
        (
            claimed.run.status,
            claimed.run.updated_at,
            claimed.run.created_at
        ),
        (RunStatus::Starting, at(7), at(1))
    );
    assert_eq!(claimed.run, get(&stores, "r2").await);
    let (given, expected) = (claimed.recipe.expect("readable"), recipe("r2", "t1"));
    assert_eq!(
        (given.spec.input, given.actor),
        (expected.spec.input.clone(), expected.actor)
    );
    let back = RunCommit {
        advance: Some(RunStatus::Pending),
        ..commit_of(&claimed.run)
    };
    stores.commit.commit(back).await.expect("given back");
    let again = claim(&stores, 8).await.expect("its turn again");
    assert_eq!((again.run.attempt, again.losses), (2, 0));
    assert_eq!(
        again.recipe.expect("readable still").spec.input,
        expected.spec.input
    );
}

/// It begins as soon as it may.
pub async fn a_delayed_run_waits_for_its_time_and_lets_others_before(
    open: impl AsyncFn() -> RunStores,
) {
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

/// Whoever asks, and however many do.
pub async fn of_many_claims_at_once_exactly_one_gets_a_run(open: impl AsyncFn() -> RunStores) {
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

/// And then it is as the last end says.
pub async fn the_thread_is_busy_until_nothing_waits(open: impl AsyncFn() -> RunStores) {
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

/// Those that wait are told as well, and the new run follows at once when nobody is at work.
pub async fn who_displaces_waits_for_the_one_at_work_only(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    let new = NewRun {
        multitask: MultitaskStrategy::Interrupt,
        at: at(2),
        ..queued("r3", "t1", 2)
    };
    let third = admit(
        &stores,
        NewRun {
            multitask: MultitaskStrategy::Interrupt,
            ..new
        },
    )
    .await;
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
        NewRun {
            multitask: MultitaskStrategy::Rollback,
            ..queued("r5", "t2", 0)
        },
    )
    .await;
    assert_eq!(
        (fifth.run.status, fifth.displaced.len()),
        (RunStatus::Starting, 1)
    );
}

/// Though its end may be written later.
pub async fn a_run_that_was_told_to_stop_never_begins(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 50)).await;
    let told = stores
        .create
        .request_cancel(&run("r1"), CancelAction::Interrupt, at(3))
        .await
        .expect("written")
        .expect("known");
    assert_eq!(
        (told.status, told.cancel),
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

async fn give_back(stores: &RunStores, id: &str) {
    let commit = commit_of(&get(stores, id).await).giving_back();
    stores.commit.commit(commit).await.expect("given back");
}

/// Also before those that were admitted earlier and waited for their time: its steps are the thread's newest.
pub async fn a_run_that_was_given_back_goes_on_before_any_other_of_its_thread(
    open: impl AsyncFn() -> RunStores,
) {
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
    give_back(&stores, "r1").await;
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

/// Until it has ended, whoever asks, and with it go the steps of one that is undone.
pub async fn nobody_begins_beside_a_run_that_was_given_back_and_told_to_stop(
    open: impl AsyncFn() -> RunStores,
) {
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
            .giving_back(),
        )
        .await
        .expect("given back");
    let undoing = NewRun {
        multitask: MultitaskStrategy::Rollback,
        at: at(1),
        ..queued("r2", "t1", 1)
    };
    let undoing = admit(&stores, undoing).await;
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

/// Nobody fills the store with runs that wait.
pub async fn a_queue_has_an_end(open: impl AsyncFn() -> RunStores) {
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

/// The last run takes it along.
pub async fn a_temporary_thread_stays_while_a_run_waits_on_it(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(
        &stores,
        NewRun {
            temporary_thread: true,
            ..queued("r1", "t1", 0)
        },
    )
    .await;
    admit(&stores, queued("r2", "t1", 1)).await;
    end(&stores, "r1", RunStatus::Error).await;
    assert_eq!(claimed(&stores, 9).await.as_deref(), Some("r2"));
    end(&stores, "r2", RunStatus::Error).await;
    let reject = NewRun {
        if_not_exists: crate::runtime::runs::IfNotExists::Reject,
        ..queued("r3", "t1", 2)
    };
    assert_eq!(
        stores.create.admit(reject).await,
        Err(AdmitError::ThreadNotFound(thread("t1")))
    );
}

/// So is one that prepares: clients know no other word.
pub async fn a_run_that_waits_is_listed_as_pending(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    admit(&stores, queued("r1", "t1", 0)).await;
    admit(&stores, queued("r2", "t1", 1)).await;
    let pending = RunListQuery {
        limit: 9,
        status: Some(RunStatus::Pending),
        ..RunListQuery::default()
    };
    let found = stores
        .query
        .list(&thread("t1"), &pending, &Owner::None)
        .await
        .expect("read");
    assert_eq!(
        found
            .iter()
            .map(|run| run.run_id.as_str())
            .collect::<Vec<_>>(),
        ["r2", "r1"]
    );
    assert_eq!(
        ThreadStatus::after(found[0].status, false),
        ThreadStatus::Busy
    );
}

/// Oldest first, of all threads or of one; with nobody's name, everybody's.
pub async fn where_unfinished_runs_stand_is_told_to_their_owner(open: impl AsyncFn() -> RunStores) {
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
    stores
        .commit
        .commit(RunCommit {
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
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
        let found = stores
            .query
            .standing(on.map(thread).as_ref(), &owner)
            .await
            .expect("read");
        found
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
