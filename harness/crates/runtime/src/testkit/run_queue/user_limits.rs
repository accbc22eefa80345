//! Contract of limits per user.

use super::{admit, at, at_once, claim, end, get, node, queued, run};
use crate::runs::store::{AdmitError, Claimed, NewRun};
use crate::runs::{RunStatus, UserRunLimits};
use crate::testkit::RunStores;
use deerflow_core::quota::{Quota, QuotaExceeded};

const LIMITS: UserRunLimits = UserRunLimits {
    max_active: Some(2),
    max_queued: Some(3),
};

/// A run on a thread of its own.
fn limited(id: &str, user: &str) -> NewRun {
    NewRun {
        user_id: Some(user.to_owned()),
        per_user: LIMITS,
        ..queued(id, &format!("t-{id}"), 0)
    }
}

async fn claim_limited(stores: &RunStores) -> Option<Claimed> {
    let claimed = stores.create.claim(&node("n1"), at(9), LIMITS).await;
    claimed.expect("claimed")
}

/// Further runs of a user at the limit are queued, then rejected; other users are not affected. A
/// queued run is claimed when a run of its user has ended.
pub async fn user_at_limit_has_runs_queued_and_rejected(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let mut statuses = Vec::new();
    for n in 0..5 {
        let admitted = admit(&stores, limited(&format!("a{n}"), "ann")).await;
        assert_eq!(admitted.run, get(&stores, &format!("a{n}")).await);
        statuses.push(admitted.run.status);
    }
    let (starting, pending) = (RunStatus::Starting, RunStatus::Pending);
    assert_eq!(statuses, [starting, starting, pending, pending, pending]);
    let exceeded = QuotaExceeded {
        quota: Quota::QueuedRuns,
        used: 3,
        limit: 3,
    };
    let rejected = stores.create.admit(limited("a5", "ann")).await;
    assert_eq!(rejected, Err(AdmitError::QuotaExceeded(exceeded)));
    let of_bob = admit(&stores, limited("b0", "bob")).await;
    assert_eq!(of_bob.run.status, starting);

    assert!(
        claim_limited(&stores).await.is_none(),
        "ann is at her limit"
    );
    end(&stores, "a0", RunStatus::Error).await;
    let first = claim_limited(&stores).await.expect("one may start");
    assert_eq!(first.run.run_id, run("a2"));
    assert!(
        claim_limited(&stores).await.is_none(),
        "ann is at her limit"
    );
    assert!(
        claim(&stores, 9).await.is_some(),
        "a process without limits claims it"
    );
}

/// Concurrent admissions of one user on several threads do not exceed the limits.
pub async fn concurrent_admissions_hold_user_limits(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    let admitted = at_once((0..20).map(|n| {
        let create = stores.create.clone();
        async move { create.admit(limited(&format!("r{n}"), "ann")).await }
    }))
    .await;
    let count = |status| {
        let with_status = |admitted: &&Result<_, _>| match admitted {
            Ok(crate::runs::store::Admitted { run, .. }) => run.status == status,
            Err(AdmitError::QuotaExceeded(_)) => false,
            Err(other) => panic!("{other}"),
        };
        admitted.iter().filter(with_status).count()
    };
    let counts = [count(RunStatus::Starting), count(RunStatus::Pending)];
    assert_eq!(counts, [2, 3]);
}
