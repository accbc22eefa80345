//! A single gateway that is killed while runs are active, and restarted.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use tokio::task::JoinSet;

use crate::follower::start_and_follow;
use crate::rig::{Cluster, ScriptedReply, TIMEOUT, body, limit, on_postgres, spread, text};

#[tokio::test]
async fn killed_single_gateway_loses_no_acknowledged_run() {
    rounds("").await;
}

#[tokio::test]
#[ignore = "needs a server; tests/cluster/run.sh starts it"]
async fn killed_single_gateway_on_servers_loses_no_run() {
    rounds(&on_postgres()).await;
}

async fn rounds(store: &str) {
    let mut cluster = Cluster::with(1, store).await;
    let gateways = cluster.gateways.clone();
    let runs = usize::try_from(setting("RUNS", 20)).expect("few");
    let (mut rounds, mut acknowledged, mut repeated, mut ready, mut over) =
        (0, 0, 0, Vec::new(), Vec::new());
    for seed in seeds(2) {
        eprintln!("seed {seed}");
        let mut random = SeededRandom::of(seed);
        let mut actual = Vec::new();
        let calls = cluster.model.requests().len();
        for index in 0..runs {
            let reply = ScriptedReply::new(
                &format!("s{seed}r{index}"),
                10 + random.below(60),
                Duration::from_millis(40),
            );
            let reply = if index % 2 == 0 {
                reply
            } else {
                reply.after_a_tool()
            };
            let thread = gateways.thread(0).await;
            let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
            actual.push((thread, run, reply));
        }
        let watched = ScriptedReply::new(&format!("s{seed}watched"), 80, Duration::from_millis(40));
        let mut watching = JoinSet::new();
        watching.spawn(start_and_follow(
            gateways.clone(),
            0,
            gateways.thread(0).await,
            watched.clone(),
        ));
        acknowledged += actual.len();
        tokio::time::sleep(random.millis(0, 2_000)).await;
        cluster.cut(0, Duration::ZERO).await;
        ready.push(cluster.nodes[0].ready_after());
        let again = Instant::now();
        for (thread, run, reply) in &actual {
            let stored = gateways.ended(0, thread, run).await.expect("a run");
            assert_eq!(text(&stored["status"]), "success", "seed {seed}: {stored}");
            reply.assert_matches(&gateways.visible_messages(0, thread).await);
        }
        over.push(again.elapsed());
        assert!(
            again.elapsed() < limit(Duration::from_secs(20)),
            "seed {seed}: over after {:?}",
            again.elapsed()
        );
        // Without an external stream store, sequence numbers restart with the process.
        if let Some(observed) = watching.join_next().await.expect("one").expect("no panic") {
            observed.is_complete(&watched);
            acknowledged += 1;
        }
        repeated += (cluster.model.requests().len() - calls)
            .saturating_sub(actual.len() + actual.len() / 2 + 1);
        for (thread, ..) in &actual {
            gateways.accepts_new_run(0, thread).await;
        }
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {acknowledged} acknowledged runs, none lost, {repeated} repeated");
    eprintln!("ready: {}; all runs over: {}", spread(ready), spread(over));
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
async fn run_that_crashes_every_process_is_abandoned() {
    let mut cluster = Cluster::with(1, "").await;
    let gateways = cluster.gateways.clone();
    let thread = gateways.thread(0).await;
    let reply = ScriptedReply::new("loop", 60, Duration::from_millis(20)).held_after(10);
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let mut deaths = 0;
    while is_retried(&cluster, &thread, &run, deaths).await {
        deaths += 1;
        assert!(deaths < 10, "the run was never abandoned");
        cluster.cut(0, Duration::ZERO).await;
    }
    assert_eq!(
        cluster.model.requests().len(),
        3,
        "the run restarts no more"
    );
    let stored = gateways.run(0, &thread, &run).await;
    assert!(
        stored["error"]
            .as_str()
            .is_some_and(|error| error.contains("every process")),
        "{stored}"
    );
    assert_eq!(
        gateways.visible_messages(0, &thread).await[0].1,
        reply.prompt,
        "accepted input stays"
    );
    gateways.accepts_new_run(0, &thread).await;
}

/// Waits until a run that called its model `calls` times calls it again or is abandoned. Returns
/// `true` if it called.
async fn is_retried(cluster: &Cluster, thread: &str, run: &str, calls: usize) -> bool {
    let started = Instant::now();
    while cluster.model.requests().len() <= calls {
        let stored = cluster.gateways.run(0, thread, run).await;
        if text(&stored["status"]) == "error" {
            return false;
        }
        assert!(
            started.elapsed() < TIMEOUT,
            "the run neither restarts nor is abandoned: {stored}"
        );
        // The other side is a process and cannot notify this one.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}
