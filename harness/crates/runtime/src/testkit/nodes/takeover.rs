//! Contract of taking over runs of lost nodes.

use super::{admit, claimed_id, enter, owned, take_over};
use crate::runs::store::{CommitError, NewRun, RunCommit};
use crate::runs::{MultitaskStrategy, RunStatus, UserRunLimits};
use crate::testkit::{
    RunStores, at, at_once, commit_of, end_in, new_run, node, run, stored_request, with_strategy,
};
use deerflow_core::actor_context::Owner;

/// Runs are taken over oldest first, each once, with the stored request.
pub async fn orphaned_runs_are_taken_over_exactly_once(open: impl AsyncFn() -> RunStores) {
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
        let claimed_run = claimed.recipe.as_ref().expect("readable");
        assert_eq!(
            claimed_run.actor,
            stored_request(&id, &format!("thread-{id}")).actor
        );
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

/// A lost attempt can commit neither a step nor the end.
pub async fn lost_attempt_cannot_commit(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let before = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    let commit = RunCommit {
        batch: 1,
        advance: Some(RunStatus::Running),
        ..commit_of(&before)
    };
    stores.commit.commit(commit.into()).await.expect("written");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    let now = take_over(&stores, "n2").await.expect("claimed").run;
    let lost = Err(CommitError::OwnershipLost {
        run_id: run("r1"),
        attempt: 1,
    });
    assert_eq!(
        stores
            .commit
            .commit(
                RunCommit {
                    batch: 2,
                    ..commit_of(&before)
                }
                .into()
            )
            .await,
        lost
    );
    assert_eq!(
        stores
            .commit
            .commit(
                RunCommit {
                    batch: 2,
                    end: Some(end_in(RunStatus::Success)),
                    ..commit_of(&before)
                }
                .into()
            )
            .await,
        lost
    );
    stores
        .commit
        .commit(
            RunCommit {
                batch: 1,
                advance: Some(RunStatus::Running),
                ..commit_of(&now)
            }
            .into(),
        )
        .await
        .expect("its own attempt");
    let commit = RunCommit {
        batch: 2,
        end: Some(end_in(RunStatus::Success)),
        ..commit_of(&now)
    };
    stores
        .commit
        .commit(commit.into())
        .await
        .expect("its own attempt");
    assert_eq!(owned(&stores, "n2").await, []);
}

/// Each loss is counted; a release is not a loss.
pub async fn run_can_be_taken_over_repeatedly(open: impl AsyncFn() -> RunStores) {
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
        let claimed = take_over(&stores, &name).await.expect("claimed");
        assert_eq!((claimed.losses, claimed.run.attempt), (n, n + 1));
    }
    let active = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    stores
        .commit
        .commit(commit_of(&active).releasing().into())
        .await
        .expect("released");
    assert_eq!(owned(&stores, "n3").await, []);
    let claimed = stores
        .create
        .claim(&node("n3"), at(9), UserRunLimits::default())
        .await
        .expect("no store error")
        .expect("claimable");
    assert_eq!((claimed.losses, claimed.run.attempt), (3, 5));
}

/// A release of a live node can count as a loss; the released attempt writes no more.
pub async fn lost_release_is_counted_and_excludes_its_attempt(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    admit(&stores, "r2", "n1").await;
    for n in 1..3 {
        let read = stores.query.get(&run("r1"), &Owner::None).await;
        let active = read.expect("read").expect("there");
        let lost = RunCommit {
            batch: 5,
            ..commit_of(&active)
        };
        let released = stores
            .commit
            .commit(commit_of(&active).releasing_as_lost().into());
        assert_eq!(released.await, Ok(()));
        let refused = Err(CommitError::OwnershipLost {
            run_id: run("r1"),
            attempt: n,
        });
        assert_eq!(stores.commit.commit(lost.clone().into()).await, refused);
        // A repetition counts no second loss.
        assert_eq!(
            stores.commit.commit(lost.releasing_as_lost().into()).await,
            refused
        );
        let (at, limits) = (at(9), UserRunLimits::default());
        let claimed = stores.create.claim(&node("n1"), at, limits).await;
        let claimed = claimed.expect("no store error").expect("claimable");
        assert_eq!((claimed.losses, claimed.run.attempt), (n, n + 1));
    }
    let of_n1 = owned(&stores, "n1").await;
    let attempts = of_n1.iter().map(|run| (run.run_id.as_str(), run.attempt));
    let mut attempts: Vec<_> = attempts.collect();
    attempts.sort_unstable();
    assert_eq!(attempts, [("r1", 3), ("r2", 1)]);
}

/// Only unfinished runs that were started can be orphaned.
pub async fn finished_and_queued_runs_are_not_taken_over(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    enter(&stores, "n1").await;
    admit(&stores, "r1", "n1").await;
    let active = stores
        .query
        .get(&run("r1"), &Owner::None)
        .await
        .expect("read")
        .expect("there");
    let commit = RunCommit {
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&active)
    };
    stores.commit.commit(commit.into()).await.expect("ended");
    let later = NewRun {
        owner: node("n1"),
        created_at: at(99),
        ..with_strategy(new_run("r2", "t2"), MultitaskStrategy::Enqueue)
    };
    stores.create.admit(later).await.expect("admitted");
    stores.nodes.leave(&node("n1")).await.expect("left");
    enter(&stores, "n2").await;
    assert_eq!(claimed_id(&stores, "n2").await, None);
}
