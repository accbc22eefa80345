//! The process dies at every named place (`harness::runtime::fail_points`), and what it had acknowledged is there after its next
//! start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use deerflow_tests::dice::{Dice, seeds, setting};
use deerflow_tests::gateway::{GatewayOptions, GatewayProcess, deerflow_binary};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::play::Play;
use crate::rig::{Cluster, on_postgres, through_redis};

/// Every place that a play passes on its way, whatever it stands on.
const PLACES: &[&str] = &[
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

/// How many plays go on at once: each waits most of the time.
const AT_ONCE: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes; tests/cluster/run.sh has them"]
async fn nothing_acknowledged_is_lost_wherever_the_only_gateway_dies() {
    dies_everywhere(
        || "run_events: {backend: jsonl}\n".to_owned(),
        &["journal.appended"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn nothing_acknowledged_is_lost_wherever_a_gateway_on_servers_dies() {
    let sections = || {
        on_postgres() + &through_redis() + "run_ownership: {lease_seconds: 5, max_attempts: 20}\n"
    };
    dies_everywhere(sections, &["stream.appended", "stream.gathered"]).await;
}

#[tokio::test]
async fn a_gateway_that_dies_while_it_makes_its_schema_makes_it_the_next_time() {
    for place in [
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
        options.env = vec![("DEERFLOW_DIES_AT".to_owned(), place.to_owned())];
        let failed = GatewayProcess::launch(options.clone())
            .await
            .expect_err(place);
        assert!(
            failed.to_string().contains("printed"),
            "{place}: {failed:#}"
        );
        options.env.clear();
        GatewayProcess::launch(options).await.expect("healthy");
    }
}

/// Lets a gateway die at each place, `ROUNDS` times at another passing of it. `PLACE` names one to die at.
async fn dies_everywhere(sections: fn() -> String, own: &[&str]) {
    let passed = passed_in_peace(&sections()).await;
    for place in PLACES.iter().chain(own) {
        assert!(
            passed.contains_key(*place),
            "nobody came to {place}: {passed:?}"
        );
    }
    let only = setting("PLACE", u64::MAX);
    let (turns, mut dying) = (Arc::new(Semaphore::new(AT_ONCE)), JoinSet::new());
    for seed in seeds(1) {
        for (number, (place, times)) in (0..).zip(&passed) {
            if only != u64::MAX && only != number {
                continue;
            }
            let times = 1 + Dice::of(seed.wrapping_mul(1_000) + number)
                .below(usize::try_from(*times).expect("few"));
            let (turns, place, sections) = (turns.clone(), place.clone(), sections());
            dying.spawn(async move {
                let _turn = turns.acquire_owned().await.expect("never closed");
                eprintln!("seed {seed}: place {number}, {place}, passing {times}");
                let died = dies_at(&format!("{place}:{times}"), &sections).await;
                (place, died)
            });
        }
    }
    let (mut plays, mut alive) = (0, Vec::new());
    while let Some(played) = dying.join_next().await {
        let (place, died) = played.expect("nothing is lost");
        plays += 1;
        if !died {
            alive.push(place);
        }
    }
    eprintln!(
        "{plays} plays of {} places, nothing lost; the process did not come so far: {alive:?}",
        passed.len()
    );
    assert!(
        alive.len() * 4 <= plays,
        "most die where they should: {alive:?}"
    );
}

/// How often each place is passed when nobody dies but at the kill in the middle.
async fn passed_in_peace(sections: &str) -> BTreeMap<String, u64> {
    let mut cluster = Cluster::with(1, sections).await;
    let play = Play::begin(&mut cluster).await;
    cluster.nodes[0].restart().await.expect("healthy again");
    let play = play.go_on(&cluster.web).await;
    cluster.nodes[0].terminate().await.expect("stopped");
    let lines = std::fs::read_to_string(&play.passes).expect("what was passed");
    cluster.nodes[0].set_env("DEERFLOW_PASSES", None);
    cluster.nodes[0].restart().await.expect("healthy again");
    play.ends_as_promised(&cluster).await;
    let mut passed = BTreeMap::new();
    for place in lines.lines() {
        *passed.entry(place.to_owned()).or_insert(0) += 1;
    }
    passed
}

/// Plays with a gateway that dies there, if it comes so far, and looks at what is left. Says whether it died.
async fn dies_at(place: &str, sections: &str) -> bool {
    let mut cluster = Cluster::with(1, sections).await;
    let play = Play::begin(&mut cluster).await;
    cluster.nodes[0].set_env("DEERFLOW_DIES_AT", Some(place));
    // It may die before it is ready.
    let (play, died) = match cluster.nodes[0].restart().await {
        Ok(()) => {
            let play = play.go_on(&cluster.web).await;
            let died = cluster.nodes[0].has_ended()
                || !cluster.nodes[0]
                    .terminate()
                    .await
                    .expect("stopped")
                    .success();
            (play, died)
        }
        Err(_) => (play, true),
    };
    cluster.nodes[0].set_env("DEERFLOW_DIES_AT", None);
    cluster.nodes[0].set_env("DEERFLOW_PASSES", None);
    cluster.nodes[0].kill9().await.expect("killed");
    tokio::time::timeout(Duration::from_secs(30), cluster.nodes[0].restart())
        .await
        .expect("in time")
        .expect("healthy again");
    play.ends_as_promised(&cluster).await;
    died
}
