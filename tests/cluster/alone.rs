//! The only gateway is killed while runs are live, and started again.

use std::time::{Duration, Instant};

use deerflow_tests::dice::{Dice, seeds, setting};
use tokio::task::JoinSet;

use crate::follower::tell;
use crate::rig::{Cluster, PATIENCE, Story, body, limit, on_postgres, spread, text};

#[tokio::test]
async fn no_acknowledged_run_is_lost_when_the_only_gateway_dies() {
    rounds("").await;
}

#[tokio::test]
#[ignore = "needs a server; tests/cluster/run.sh starts it"]
async fn no_acknowledged_run_is_lost_when_the_only_gateway_on_a_server_dies() {
    rounds(&on_postgres()).await;
}

async fn rounds(store: &str) {
    let mut cluster = Cluster::with(1, store).await;
    let web = cluster.web.clone();
    let runs = usize::try_from(setting("RUNS", 20)).expect("few");
    let (mut rounds, mut acknowledged, mut repeated, mut ready, mut over) =
        (0, 0, 0, Vec::new(), Vec::new());
    for seed in seeds(2) {
        eprintln!("seed {seed}");
        let mut dice = Dice::of(seed);
        let mut told = Vec::new();
        let calls = cluster.model.requests().len();
        for place in 0..runs {
            let story = Story::new(
                &format!("s{seed}r{place}"),
                10 + dice.below(60),
                Duration::from_millis(40),
            );
            let story = if place % 2 == 0 {
                story
            } else {
                story.after_a_tool()
            };
            let thread = web.thread(0).await;
            let run = web.background(0, &thread, &body(&story.prompt)).await;
            told.push((thread, run, story));
        }
        let watched = Story::new(&format!("s{seed}watched"), 80, Duration::from_millis(40));
        let mut watching = JoinSet::new();
        watching.spawn(tell(web.clone(), 0, web.thread(0).await, watched.clone()));
        acknowledged += told.len();
        tokio::time::sleep(dice.millis(0, 2_000)).await;
        cluster.cut(0, Duration::ZERO).await;
        ready.push(cluster.nodes[0].ready_after());
        let again = Instant::now();
        for (thread, run, story) in &told {
            let shown = web.ended(0, thread, run).await.expect("a run");
            assert_eq!(text(&shown["status"]), "success", "seed {seed}: {shown}");
            story.is_told_by(&web.talk(0, thread).await);
        }
        over.push(again.elapsed());
        assert!(
            again.elapsed() < limit(Duration::from_secs(20)),
            "seed {seed}: over after {:?}",
            again.elapsed()
        );
        // Numbers begin anew with the process, where streams are in its memory.
        if let Some(seen) = watching.join_next().await.expect("one").expect("no panic") {
            seen.is_complete(&watched);
            acknowledged += 1;
        }
        repeated += (cluster.model.requests().len() - calls)
            .saturating_sub(told.len() + told.len() / 2 + 1);
        for (thread, ..) in &told {
            web.goes_on(0, thread).await;
        }
        rounds += 1;
    }
    eprintln!("{rounds} rounds, {acknowledged} acknowledged runs, none lost, {repeated} repeated");
    eprintln!("ready: {}; all runs over: {}", spread(ready), spread(over));
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
async fn a_run_that_always_takes_its_process_with_it_is_given_up() {
    let mut cluster = Cluster::with(1, "").await;
    let web = cluster.web.clone();
    let thread = web.thread(0).await;
    let story = Story::new("loop", 60, Duration::from_millis(20)).held_after(10);
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let mut deaths = 0;
    while begins_again(&cluster, &thread, &run, deaths).await {
        deaths += 1;
        assert!(deaths < 10, "it is never given up");
        cluster.cut(0, Duration::ZERO).await;
    }
    assert_eq!(
        cluster.model.requests().len(),
        3,
        "no run begins more often"
    );
    let shown = web.run(0, &thread, &run).await;
    assert!(
        shown["error"]
            .as_str()
            .is_some_and(|error| error.contains("every process")),
        "{shown}"
    );
    assert_eq!(
        web.talk(0, &thread).await[0].1,
        story.prompt,
        "accepted input stays"
    );
    web.goes_on(0, &thread).await;
}

/// Waits until a run that called its model so often calls it again, or is given up. Says whether it called.
async fn begins_again(cluster: &Cluster, thread: &str, run: &str, calls: usize) -> bool {
    let begun = Instant::now();
    while cluster.model.requests().len() <= calls {
        let shown = cluster.web.run(0, thread, run).await;
        if text(&shown["status"]) == "error" {
            return false;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "it neither begins again nor is given up: {shown}"
        );
        // The other side is a process: nothing here could be notified.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}
