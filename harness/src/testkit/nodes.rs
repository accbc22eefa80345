//! What stores promise about the processes that work on their runs, and about the runs of those that are gone.

use std::time::Duration;

use super::{RunStores, at, at_once, commit_of, end_in, new_run, node, recipe, run};
use crate::runtime::actor_context::Owner;
use crate::runtime::runs::store::{Claimed, CommitError, Hold, Lease, NewRun, OwnedRun, RunCommit};
use crate::runtime::runs::{CancelAction, MultitaskStrategy, RunCompletionData, RunStatus};

/// One test per promise.
#[macro_export]
macro_rules! node_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::nodes]
            a_process_lives_until_it_leaves
            who_has_the_store_for_itself_ends_all_others
            a_lapsed_lease_is_never_revived
            the_runs_of_a_process_that_lives_are_its_own
            the_runs_of_a_process_that_left_are_taken_by_one_other
            who_lost_a_run_cannot_write_it
            a_run_can_be_lost_again_and_again
            a_run_that_is_over_or_waits_is_not_taken_over
            a_process_sees_which_of_its_runs_were_told_to_stop
            a_place_that_nobody_takes_is_kept
            what_a_run_adds_up_to_stays_when_its_process_is_gone
            a_run_is_as_old_as_its_first_start
        }
    };
}

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

async fn enter(stores: &RunStores, name: &str) -> Lease {
    stores
        .nodes
        .register(&node(name), LONG)
        .await
        .expect("entered")
}

async fn admit(stores: &RunStores, id: &str, owner: &str) {
    let new = NewRun {
        owner: node(owner),
        ..new_run(id, &format!("thread-{id}"))
    };
    stores.create.admit(new).await.expect("admitted");
}

async fn take_over(stores: &RunStores, name: &str) -> Option<Claimed> {
    stores
        .create
        .take_over(&node(name), at(7))
        .await
        .expect("looked")
}

async fn taken(stores: &RunStores, name: &str) -> Option<String> {
    take_over(stores, name)
        .await
        .map(|taken| taken.run.run_id.to_string())
}

async fn owned(stores: &RunStores, name: &str) -> Vec<OwnedRun> {
    stores.nodes.owned(&node(name)).await.expect("read")
}

/// And is seen by others meanwhile.
pub async fn a_process_lives_until_it_leaves(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    assert_eq!(stores.nodes.renew(&node("n1"), LONG).await, Ok(true));
    let seen = stores.nodes.list().await.expect("read");
    assert_eq!(
        seen.iter()
            .map(|seen| (seen.node.as_str(), seen.runs))
            .collect::<Vec<_>>(),
        [("n1", 1)]
    );
    for _ in 0..2 {
        stores.nodes.leave(&node("n1")).await.expect("left");
        assert_eq!(stores.nodes.renew(&node("n1"), LONG).await, Ok(false));
        assert_eq!(stores.nodes.list().await, Ok(vec![]));
    }
}

/// Where others may be there, they stay.
pub async fn who_has_the_store_for_itself_ends_all_others(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    let alone = enter(&stores, "n2").await == Lease::Alone;
    assert_eq!(stores.nodes.renew(&node("n1"), LONG).await, Ok(!alone));
    assert_eq!(stores.nodes.renew(&node("n2"), LONG).await, Ok(true));
}

/// Where leases lapse at all.
pub async fn a_lapsed_lease_is_never_revived(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let lease = stores
        .nodes
        .register(&node("n1"), Duration::ZERO)
        .await
        .expect("entered");
    let lives = lease == Lease::Alone;
    for _ in 0..2 {
        assert_eq!(stores.nodes.renew(&node("n1"), LONG).await, Ok(lives));
        assert_eq!(stores.nodes.list().await.expect("read").is_empty(), !lives);
    }
}

/// However often others look.
pub async fn the_runs_of_a_process_that_lives_are_its_own(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    assert_eq!(taken(&stores, "n2").await, None);
    let expected = OwnedRun {
        run_id: run("r1"),
        thread_id: super::thread("thread-r1"),
        attempt: 1,
        cancel: None,
    };
    assert_eq!(owned(&stores, "n1").await, [expected]);
    assert_eq!(owned(&stores, "n2").await, []);
}

/// The oldest first, each once, with what it takes to start it again.
pub async fn the_runs_of_a_process_that_left_are_taken_by_one_other(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    enter(&stores, "n1").await;
    for n in 0..3 {
        admit(&stores, &format!("r{n}"), "n1").await;
    }
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    let mut all = at_once((0..8).map(|_| {
        let stores = stores.clone();
        async move { take_over(&stores, "n2").await }
    }))
    .await
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    all.sort_by_key(|claimed| claimed.run.run_id.to_string());
    for (n, claimed) in all.iter().enumerate() {
        let id = format!("r{n}");
        assert_eq!(claimed.run.run_id, run(&id));
        assert_eq!(
            (claimed.run.status, claimed.run.attempt, claimed.losses),
            (RunStatus::Starting, 2, 1)
        );
        assert_eq!(claimed.run.updated_at, at(7));
        assert_eq!(
            stores.query.get(&run(&id), &Owner::None).await,
            Ok(Some(claimed.run.clone()))
        );
        let given = claimed.recipe.as_ref().expect("readable");
        assert_eq!(given.actor, recipe(&id, &format!("thread-{id}")).actor);
    }
    assert_eq!(all.len(), 3);
    assert_eq!(
        (
            owned(&stores, "n1").await.len(),
            owned(&stores, "n2").await.len()
        ),
        (0, 3)
    );
}

/// Neither a step nor the end.
pub async fn who_lost_a_run_cannot_write_it(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let before = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    stores
        .commit
        .commit(RunCommit {
            batch: 1,
            advance: Some(RunStatus::Running),
            ..commit_of(&before)
        })
        .await
        .expect("written");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    let now = take_over(&stores, "n2").await.expect("taken").run;
    let lost = Err(CommitError::OwnershipLost {
        run_id: run("r1"),
        attempt: 1,
    });
    assert_eq!(
        stores
            .commit
            .commit(RunCommit {
                batch: 2,
                ..commit_of(&before)
            })
            .await,
        lost
    );
    assert_eq!(
        stores
            .commit
            .commit(RunCommit {
                batch: 2,
                end: Some(end_in(RunStatus::Success)),
                ..commit_of(&before)
            })
            .await,
        lost
    );
    stores
        .commit
        .commit(RunCommit {
            batch: 1,
            advance: Some(RunStatus::Running),
            ..commit_of(&now)
        })
        .await
        .expect("its own");
    stores
        .commit
        .commit(RunCommit {
            batch: 2,
            end: Some(end_in(RunStatus::Success)),
            ..commit_of(&now)
        })
        .await
        .expect("its own");
    assert_eq!(owned(&stores, "n2").await, []);
}

/// Each time is counted; giving a run back is no loss.
pub async fn a_run_can_be_lost_again_and_again(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n0").await;
    admit(&stores, "r1", "n0").await;
    for n in 1..4 {
        stores
            .nodes
            .leave(&node(&format!("n{}", n - 1)))
            .await
            .expect("left");
        let name = format!("n{n}");
        enter(&stores, &name).await;
        let taken = take_over(&stores, &name).await.expect("taken");
        assert_eq!((taken.losses, taken.run.attempt), (n, n + 1));
    }
    let held = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    stores
        .commit
        .commit(commit_of(&held).giving_back())
        .await
        .expect("given back");
    assert_eq!(owned(&stores, "n3").await, []);
    let claimed = stores
        .create
        .claim(&node("n3"), at(9))
        .await
        .expect("looked")
        .expect("its turn");
    assert_eq!((claimed.losses, claimed.run.attempt), (3, 5));
}

/// Nobody has to go on with it.
pub async fn a_run_that_is_over_or_waits_is_not_taken_over(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let held = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    stores
        .commit
        .commit(RunCommit {
            end: Some(end_in(RunStatus::Error)),
            ..commit_of(&held)
        })
        .await
        .expect("ended");
    let later = NewRun {
        owner: node("n1"),
        created_at: at(99),
        multitask: MultitaskStrategy::Enqueue,
        ..new_run("r2", "t2")
    };
    stores.create.admit(later).await.expect("admitted");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(taken(&stores, "n2").await, None);
}

/// Whoever told them.
pub async fn a_process_sees_which_of_its_runs_were_told_to_stop(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    stores
        .create
        .request_cancel(&run("r1"), CancelAction::Rollback, at(3))
        .await
        .expect("written");
    let told: Vec<_> = owned(&stores, "n1")
        .await
        .into_iter()
        .map(|run| run.cancel)
        .collect();
    assert_eq!(told, [Some(CancelAction::Rollback)]);
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(
        take_over(&stores, "n2").await.expect("taken").run.cancel,
        Some(CancelAction::Rollback)
    );
}

/// However often one looks.
pub async fn a_place_that_nobody_takes_is_kept(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for _ in 0..3 {
        assert_eq!(stores.nodes.hold().await, Ok(Hold::Kept));
    }
}

/// As far as it was written.
pub async fn what_a_run_adds_up_to_stays_when_its_process_is_gone(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let held = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    let so_far = RunCompletionData {
        total_tokens: 7,
        llm_call_count: 2,
        ..RunCompletionData::default()
    };
    let step = RunCommit {
        advance: Some(RunStatus::Running),
        so_far: Some(Box::new(so_far.clone())),
        ..commit_of(&held)
    };
    stores.commit.commit(step).await.expect("written");
    stores
        .commit
        .commit(commit_of(&held))
        .await
        .expect("one that says nothing of it");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(
        take_over(&stores, "n2")
            .await
            .expect("taken")
            .run
            .completion,
        so_far
    );
}

/// Whoever works on it, and however often it was given back.
pub async fn a_run_is_as_old_as_its_first_start(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    let taken = take_over(&stores, "n2").await.expect("taken");
    assert_eq!(
        taken.worked,
        Duration::ZERO,
        "it was admitted and never at work"
    );
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Running),
            ..commit_of(&taken.run)
        })
        .await
        .expect("written");
    // The clock of some stores counts milliseconds.
    tokio::time::sleep(Duration::from_millis(20)).await;
    let running = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    stores
        .commit
        .commit(commit_of(&running).giving_back())
        .await
        .expect("given back");
    let first = stores
        .create
        .claim(&node("n2"), at(6))
        .await
        .expect("looked")
        .expect("its turn");
    assert!(first.worked > Duration::ZERO);
    stores
        .commit
        .commit(RunCommit {
            advance: Some(RunStatus::Running),
            ..commit_of(&first.run)
        })
        .await
        .expect("written");
    stores.nodes.leave(&node("n2")).await.expect("left");
    enter(&stores, "n3").await;
    assert!(take_over(&stores, "n3").await.expect("taken").worked >= first.worked);
}
