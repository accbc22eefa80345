//! Crashes the process at every fail point (`harness::runtime::fail_points`), and checks after the
//! next start that everything acknowledged is there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deerflow_tests::gateway::{GatewayOptions, GatewayProcess, deerflow_binary};
use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::rig::{Cluster, on_postgres, through_redis};
use crate::workload::Workload;

/// Fail points that every workload passes, whatever its stores.
const POINTS: &[&str] = &[
    "call.made",
    "call.noted",
    "call.written",
    "cancel.told",
    "cancel.written",
    "end.published",
    "end.settled",
    "end.stored",
    "end.tidied",
    "end.told",
    "file.renamed",
    "file.written",
    "migration.committed",
    "migration.written",
    "node.joined",
    "queue.claimed",
    "queue.launched",
    "queue.taken-over",
    "request.made",
    "run.admitted",
    "run.announced",
    "run.before-giving-back",
    "run.displaced",
    "run.given-back",
    "run.prepared",
    "shutdown.patience-over",
    "shutdown.work-over",
    "step.gathered",
    "step.stored",
    "store.committed",
    "store.written",
    "thread.deleted",
    "webhook.leased",
    "webhook.sent",
    "webhook.written",
];

/// Number of concurrent workloads: each waits most of the time.
const CONCURRENT_WORKLOADS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; tests/cluster/run.sh has them"]
async fn crash_at_any_point_loses_nothing_acknowledged() {
    crash_at_every_point(
        || "run_events: {backend: jsonl}\n".to_owned(),
        &["journal.appended"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn crash_at_any_point_on_servers_loses_nothing_acknowledged() {
    let sections = || {
        on_postgres() + &through_redis() + "run_ownership: {lease_seconds: 5, max_attempts: 20}\n"
    };
    crash_at_every_point(sections, &["stream.appended", "stream.gathered"]).await;
}

#[tokio::test]
async fn crash_during_schema_creation_is_completed_at_next_start() {
    for point in [
        "migration.written:1",
        "migration.committed:1",
        "store.written:1",
    ] {
        let home = tempfile::tempdir().expect("a folder");
        let mut options = GatewayOptions::new(
            deerflow_binary().expect("built"),
            "config_version: 34\nmodels: []\n",
        );
        options.home = Some(home.path().to_owned());
        options.env = vec![("DEERFLOW_DIES_AT".to_owned(), point.to_owned())];
        let failed = GatewayProcess::launch(options.clone())
            .await
            .expect_err(point);
        assert!(
            failed.to_string().contains("printed"),
            "{point}: {failed:#}"
        );
        options.env.clear();
        GatewayProcess::launch(options).await.expect("healthy");
    }
}

/// Crashes a gateway at each fail point, `ROUNDS` times at different passes. `PLACE` selects one
/// fail point.
async fn crash_at_every_point(sections: fn() -> String, own: &[&str]) {
    let passed = passes_without_crash(&sections()).await;
    for point in POINTS.iter().chain(own) {
        assert!(
            passed.contains_key(*point),
            "no workload passed {point}: {passed:?}"
        );
    }
    let only = setting("PLACE", u64::MAX);
    let (slots, mut crashing) = (
        Arc::new(Semaphore::new(CONCURRENT_WORKLOADS)),
        JoinSet::new(),
    );
    for seed in seeds(1) {
        for (number, (point, times)) in (0..).zip(&passed) {
            if only != u64::MAX && only != number {
                continue;
            }
            let times = 1 + SeededRandom::of(seed.wrapping_mul(1_000) + number)
                .below(usize::try_from(*times).expect("few"));
            let (slots, point, sections) = (slots.clone(), point.clone(), sections());
            crashing.spawn(async move {
                let _slot = slots.acquire_owned().await.expect("never closed");
                eprintln!("seed {seed}: fail point {number}, {point}, pass {times}");
                let died = crash_at(&format!("{point}:{times}"), &sections).await;
                (point, died)
            });
        }
    }
    let (mut workloads, mut alive) = (0, Vec::new());
    while let Some(outcome) = crashing.join_next().await {
        let (point, died) = outcome.expect("nothing is lost");
        workloads += 1;
        if !died {
            alive.push(point);
        }
    }
    eprintln!(
        "{workloads} workloads over {} fail points, nothing lost; not reached: {alive:?}",
        passed.len()
    );
    assert!(
        alive.len() * 4 <= workloads,
        "most crash where they should: {alive:?}"
    );
}

/// Counts how often each fail point is passed without a crash except for the kill in the middle.
async fn passes_without_crash(sections: &str) -> BTreeMap<String, u64> {
    let mut cluster = Cluster::with(1, sections).await;
    let workload = Workload::begin(&mut cluster).await;
    cluster.nodes[0].restart().await.expect("healthy again");
    let workload = workload.run_all(&cluster.gateways).await;
    cluster.nodes[0].terminate().await.expect("stopped");
    let lines = std::fs::read_to_string(&workload.passes).expect("recorded passes");
    cluster.nodes[0].set_env("DEERFLOW_PASSES", None);
    cluster.nodes[0].restart().await.expect("healthy again");
    workload.assert_guarantees(&cluster).await;
    let mut passed = BTreeMap::new();
    for point in lines.lines() {
        *passed.entry(point.to_owned()).or_insert(0) += 1;
    }
    passed
}

/// Runs the workload on a gateway that crashes at this fail point if it reaches it, and checks the
/// result. Returns whether it crashed.
async fn crash_at(point: &str, sections: &str) -> bool {
    let mut cluster = Cluster::with(1, sections).await;
    let workload = Workload::begin(&mut cluster).await;
    cluster.nodes[0].set_env("DEERFLOW_DIES_AT", Some(point));
    // It may crash before it is ready.
    let (workload, died) = match cluster.nodes[0].restart().await {
        Ok(()) => {
            let workload = workload.run_all(&cluster.gateways).await;
            let died = cluster.nodes[0].has_ended()
                || !cluster.nodes[0]
                    .terminate()
                    .await
                    .expect("stopped")
                    .success();
            (workload, died)
        }
        Err(_) => (workload, true),
    };
    cluster.nodes[0].set_env("DEERFLOW_DIES_AT", None);
    cluster.nodes[0].set_env("DEERFLOW_PASSES", None);
    cluster.nodes[0].kill9().await.expect("killed");
    tokio::time::timeout(Duration::from_secs(30), cluster.nodes[0].restart())
        .await
        .expect("in time")
        .expect("healthy again");
    workload.assert_guarantees(&cluster).await;
    died
}
