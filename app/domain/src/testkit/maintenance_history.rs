//! Contract of maintenance stores: old checkpoints and their threads.

use std::ops::RangeInclusive;
use std::sync::Arc;

use chrono::TimeDelta;
use deerflow_core::clock::ManualClock;
use deerflow_core::state::ThreadState;
use deerflow_runtime::checkpoint::HistoryQuery;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::RunCommit;
use deerflow_runtime::testkit::{
    RunStores, at, checkpoint_write, commit_of, end_in, new_run, thread,
};

use crate::accounts::InMemoryAccounts;
use crate::maintenance::{ChangedThread, HistoryRule, Maintenance, Retention, SweepReport};

use super::maintenance::{MaintenanceStores, ended};

/// Each walk continues from its own position.
pub async fn changed_threads_come_in_order_of_change(open: impl AsyncFn() -> MaintenanceStores) {
    let MaintenanceStores { upkeep, runs, .. } = open().await;
    for (n, on) in [(3, "a"), (1, "b"), (2, "c"), (2, "d"), (9, "e")] {
        ended(&runs, &format!("r-{on}"), on, TimeDelta::days(n), false).await;
    }
    let until = at(0) + TimeDelta::days(5);
    let met = async |walk: &str, limit| {
        upkeep
            .changed_threads(walk, until, limit)
            .await
            .expect("read")
    };
    let names = |met: &[ChangedThread]| {
        met.iter()
            .map(|met| met.thread.to_string())
            .collect::<Vec<_>>()
    };
    let first = met("w", 2).await;
    assert_eq!(
        (names(&first), first[1].at),
        (
            vec!["b".to_owned(), "c".to_owned()],
            at(0) + TimeDelta::days(2)
        )
    );
    upkeep
        .save_walk_position("w", &first[1])
        .await
        .expect("noted");
    let second = met("w", 9).await;
    assert_eq!(names(&second), ["d", "a"]);
    upkeep
        .save_walk_position("w", &second[1])
        .await
        .expect("noted");
    assert_eq!(
        (met("w", 9).await, names(&met("v", 1).await)),
        (vec![], vec!["b".to_owned()])
    );
}

/// Creates a run at `day` with this number of checkpoints, numbered from `first`.
async fn run_of(runs: &RunStores, id: &str, on: &str, day: i64, numbers: RangeInclusive<u64>) {
    let admitted = runs
        .create
        .admit(new_run(id, on))
        .await
        .expect("admitted")
        .run;
    let moment = at(0) + TimeDelta::days(day);
    let checkpoints = numbers.map(|n| {
        let mut write = checkpoint_write(on, Some(id), n, &mut ThreadState::default(), &mut 0);
        write.meta.created_at = moment;
        write
    });
    let checkpoints = checkpoints.collect();
    let commit = RunCommit {
        checkpoints,
        end: Some(end_in(RunStatus::Error)),
        at: moment,
        ..commit_of(&admitted)
    };
    runs.commit.commit(commit.into()).await.expect("ended");
}

async fn left(runs: &RunStores, on: &str) -> Vec<i64> {
    let query = HistoryQuery {
        limit: 1_000,
        ..HistoryQuery::default()
    };
    let metas = runs
        .checkpoints
        .list_meta(&thread(on), &query)
        .await
        .expect("read");
    metas.into_iter().map(|meta| meta.step).rev().collect()
}

/// Independent of the number of threads and checkpoints.
pub async fn old_checkpoints_are_deleted_again_after_changes(
    open: impl AsyncFn() -> MaintenanceStores,
) {
    let MaintenanceStores {
        upkeep,
        runs,
        flows,
    } = open().await;
    run_of(&runs, "r1", "long", 1, 1..=450).await;
    for n in 0..120 {
        run_of(&runs, &format!("s{n}"), &format!("t{n}"), 2, 1..=4).await;
    }
    let clock = ManualClock::starting_at(at(0) + TimeDelta::days(10));
    let sweep = Maintenance {
        accounts: Arc::new(InMemoryAccounts::default()).stores(),
        store: upkeep,
        requests: runs.requests.clone(),
        outbox: runs.webhooks.clone(),
        checkpoints: runs.checkpoints.clone(),
        flows,
        clock: Arc::new(clock.clone()),
        holder: "n1".to_owned(),
    };
    let long = TimeDelta::days(9_999);
    let rules = |newest, days| Retention {
        dead_letters: long,
        streams: long,
        run_events: None,
        histories: Some(HistoryRule { newest, days }),
        audit: long,
    };
    let deleted = |checkpoints| {
        Ok(Some(SweepReport {
            checkpoints,
            ..SweepReport::default()
        }))
    };
    assert_eq!(
        sweep.sweep(rules(2, Some(30))).await,
        deleted(0),
        "all are young"
    );
    assert_eq!(sweep.sweep(rules(2, None)).await, deleted(447 + 120));
    assert_eq!(
        (left(&runs, "long").await, left(&runs, "t7").await),
        (vec![448, 449, 450], vec![2, 3, 4])
    );
    assert_eq!(sweep.sweep(rules(2, None)).await, deleted(0));
    run_of(&runs, "r2", "t7", 9, 5..=6).await;
    assert_eq!(sweep.sweep(rules(2, None)).await, deleted(2));
    assert_eq!(left(&runs, "t7").await, [4, 5, 6]);
    // Checkpoints exceed their age either at a change of the thread, or when it was unchanged for
    // that long.
    assert_eq!(sweep.sweep(rules(1, Some(5))).await, deleted(1 + 119));
    assert_eq!(
        (left(&runs, "t7").await, left(&runs, "t8").await),
        (vec![4, 5, 6], vec![3, 4])
    );
    clock.advance(TimeDelta::days(5));
    assert_eq!(sweep.sweep(rules(1, Some(5))).await, deleted(1));
    assert_eq!(left(&runs, "t7").await, [5, 6]);
}
