//! Contract of nodes: leases, ownership of runs, and takeover.

mod takeover;

use std::time::Duration;

use super::{RunStores, at, commit_of, new_run, node, run};
use crate::runs::store::{Claimed, Lease, NewRun, OwnedRun, RunCommit, StoreLockStatus};
use crate::runs::{CancelAction, RunCompletionData, RunStatus, UserRunLimits};
use deerflow_core::actor_context::Owner;

pub use takeover::{
    finished_and_queued_runs_are_not_taken_over, lost_attempt_cannot_commit,
    lost_release_is_counted_and_excludes_its_attempt, orphaned_runs_are_taken_over_exactly_once,
    run_can_be_taken_over_repeatedly,
};

/// Generates one test per guarantee.
#[macro_export]
macro_rules! node_store_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::nodes]
            node_is_live_until_it_leaves
            exclusive_registration_removes_all_other_nodes
            expired_lease_is_never_renewed
            runs_of_live_node_are_not_taken_over
            orphaned_runs_are_taken_over_exactly_once
            lost_attempt_cannot_commit
            run_can_be_taken_over_repeatedly
            lost_release_is_counted_and_excludes_its_attempt
            finished_and_queued_runs_are_not_taken_over
            node_sees_cancel_requests_of_its_runs
            undisturbed_hold_is_retained
            usage_survives_loss_of_the_node
            run_age_counts_from_first_start
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
        .expect("no store error")
}

async fn claimed_id(stores: &RunStores, name: &str) -> Option<String> {
    take_over(stores, name)
        .await
        .map(|claimed| claimed.run.run_id.to_string())
}

async fn owned(stores: &RunStores, name: &str) -> Vec<OwnedRun> {
    stores.nodes.owned(&node(name)).await.expect("read")
}

/// A live node is in the list.
pub async fn node_is_live_until_it_leaves(open: impl AsyncFn() -> RunStores) {
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

/// In shared stores, other nodes remain.
pub async fn exclusive_registration_removes_all_other_nodes(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    let alone = enter(&stores, "n2").await == Lease::Alone;
    assert_eq!(stores.nodes.renew(&node("n1"), LONG).await, Ok(!alone));
    assert_eq!(stores.nodes.renew(&node("n2"), LONG).await, Ok(true));
}

/// Applies to stores whose leases expire.
pub async fn expired_lease_is_never_renewed(open: impl AsyncFn() -> RunStores) {
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

/// Repeated takeover attempts have the same result.
pub async fn runs_of_live_node_are_not_taken_over(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    assert_eq!(claimed_id(&stores, "n2").await, None);
    let expected = OwnedRun {
        run_id: run("r1"),
        thread_id: super::thread("thread-r1"),
        attempt: 1,
        cancel: None,
    };
    assert_eq!(owned(&stores, "n1").await, [expected]);
    assert_eq!(owned(&stores, "n2").await, []);
}

/// Cancel requests of any source are visible to the owning node.
pub async fn node_sees_cancel_requests_of_its_runs(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    stores
        .create
        .request_cancel(&run("r1"), CancelAction::Rollback, at(3))
        .await
        .expect("written");
    let cancel_requested: Vec<_> = owned(&stores, "n1")
        .await
        .into_iter()
        .map(|run| run.cancel)
        .collect();
    assert_eq!(cancel_requested, [Some(CancelAction::Rollback)]);
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(
        take_over(&stores, "n2").await.expect("claimed").run.cancel,
        Some(CancelAction::Rollback)
    );
}

/// The check succeeds any number of times.
pub async fn undisturbed_hold_is_retained(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for _ in 0..3 {
        assert_eq!(stores.nodes.hold().await, Ok(StoreLockStatus::Kept));
    }
}

/// The usage remains as far as it was committed.
pub async fn usage_survives_loss_of_the_node(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let active = stores
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
        ..commit_of(&active)
    };
    stores.commit.commit(step.into()).await.expect("written");
    stores
        .commit
        .commit(commit_of(&active).into())
        .await
        .expect("a commit without usage");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(
        take_over(&stores, "n2")
            .await
            .expect("claimed")
            .run
            .completion,
        so_far
    );
}

/// The age continues across takeovers and releases.
pub async fn run_age_counts_from_first_start(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    let claimed = take_over(&stores, "n2").await.expect("claimed");
    assert_eq!(claimed.worked, Duration::ZERO, "admitted and never started");
    let commit = RunCommit {
        advance: Some(RunStatus::Running),
        ..commit_of(&claimed.run)
    };
    stores.commit.commit(commit.into()).await.expect("written");
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
        .commit(commit_of(&running).releasing().into())
        .await
        .expect("released");
    let first = stores
        .create
        .claim(&node("n2"), at(6), UserRunLimits::default())
        .await
        .expect("no store error")
        .expect("claimable");
    assert!(first.worked > Duration::ZERO);
    let commit = RunCommit {
        advance: Some(RunStatus::Running),
        ..commit_of(&first.run)
    };
    stores.commit.commit(commit.into()).await.expect("written");
    stores.nodes.leave(&node("n2")).await.expect("left");
    enter(&stores, "n3").await;
    assert!(take_over(&stores, "n3").await.expect("claimed").worked >= first.worked);
}
