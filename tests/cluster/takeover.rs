//! An owner that dies, freezes or is told to stop: others go on with its runs, once.

use std::time::{Duration, Instant};

use deerflow_tests::dice::setting;
use tokio::task::JoinSet;

use crate::follower::{join, tell};
use crate::rig::{
    Cluster, Story, body, gives_figures, limit, on_postgres, p99, spread, text, through_redis,
};

/// What taking over may need: the lease, the sweep, and the way to the viewer.
pub(crate) const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(15);
/// What handing over may need once the node has stopped: the way to others and to the viewer.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn when_the_owner_is_killed_the_client_gets_the_rest_from_others() {
    let mut cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let mut times = Vec::new();
    for round in 0..setting("ROUNDS", 2) {
        let story = Story::new(&format!("kill{round}"), 100, Duration::from_millis(50));
        let thread = web.thread(0).await;
        let mut telling = JoinSet::new();
        telling.spawn(tell(web.clone(), 0, thread.clone(), story.clone()));
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        let killed = Instant::now();
        cluster.nodes[0].kill9().await.expect("killed");
        let seen = telling
            .join_next()
            .await
            .expect("one")
            .expect("no panic")
            .expect("acknowledged");
        seen.is_whole(&story);
        let took = seen.taken_over_after(killed).expect("another attempt");
        eprintln!("round {round}: taken over after {took:.1?}");
        times.push(took);
        assert_eq!(web.run(1, &thread, &seen.run).await["status"], "success");
        assert_eq!(web.talk(2, &thread).await, story.talk());
        cluster.nodes[0].restart().await.expect("healthy again");
        web.goes_on(0, &thread).await;
    }
    eprintln!("taken over: {}", spread(times.clone()));
    let most = p99(times);
    assert!(most < limit(TAKEN_OVER_WITHIN), "p99 {most:?}");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn an_owner_that_was_frozen_writes_nothing_more() {
    let cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let away = setting("FROZEN_SECONDS", 15);
    let words = usize::try_from(away * 10 + 50).expect("few");
    let story = Story::new("frozen", words, Duration::from_millis(100));
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let mut viewers = JoinSet::new();
    viewers.spawn(join(web.clone(), 1, thread.clone(), run.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let frozen = Instant::now();
    cluster.nodes[0].freeze().expect("frozen");
    tokio::time::sleep(Duration::from_secs(away)).await;
    cluster.nodes[0].thaw().expect("thawed");
    // The thawed one serves viewers, too, and gets what the others make.
    viewers.spawn(join(web.clone(), 0, thread.clone(), run.clone()));
    let mut soonest = Duration::MAX;
    while let Some(seen) = viewers.join_next().await {
        let seen = seen.expect("no panic");
        seen.is_whole(&story);
        assert_eq!(
            seen.attempts.keys().copied().max(),
            Some(2),
            "taken over once"
        );
        // Who joined later saw it later.
        soonest = soonest.min(seen.taken_over_after(frozen).expect("another attempt"));
    }
    eprintln!("taken over after {soonest:.1?}");
    assert!(soonest < limit(TAKEN_OVER_WITHIN), "{soonest:?}");
    for node in 0..3 {
        assert_eq!(web.run(node, &thread, &run).await["status"], "success");
        assert_eq!(web.talk(node, &thread).await, story.talk());
    }
    assert_eq!(cluster.model.requests().len(), 2, "one call each");
    web.goes_on(0, &thread).await;
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn runs_of_a_node_that_is_told_to_stop_go_on_elsewhere_within_seconds() {
    // Nobody takes over by a lease that lapses: what goes on elsewhere was handed over.
    let lease = Duration::from_secs(300);
    let own = format!(
        "runs: {{shutdown_grace_seconds: 15}}\nrun_ownership: {{lease_seconds: {}}}\n",
        lease.as_secs()
    );
    let mut cluster = Cluster::with(3, &(on_postgres() + &through_redis() + &own)).await;
    let web = cluster.web.clone();
    let runs = usize::try_from(setting("RUNS", 10)).expect("few");
    let mut telling = JoinSet::new();
    let mut stories = Vec::new();
    for place in 0..runs {
        // Some end while the node still waits for them, some do not.
        let story = Story::new(
            &format!("stop{place}"),
            if place % 2 == 0 { 30 } else { 60 },
            Duration::from_millis(100),
        );
        let story = if place % 2 == 0 {
            story
        } else {
            story.held_after(30)
        };
        let thread = web.thread(0).await;
        telling.spawn(tell(web.clone(), 0, thread.clone(), story.clone()));
        stories.push((thread, story));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let stopping = Instant::now();
    let status = cluster.nodes[0].terminate().await.expect("stopped in time");
    assert!(status.success(), "{status}");
    let stopped = stopping.elapsed();
    cluster.model.release();
    let mut times = Vec::new();
    while let Some(seen) = telling.join_next().await {
        let seen = seen.expect("no panic").expect("acknowledged");
        let story = &stories
            .iter()
            .find(|(thread, _)| *thread == seen.thread)
            .expect("known")
            .1;
        seen.is_whole(story);
        times.extend(seen.taken_over_after(stopping));
        let shown = web.run(1, &seen.thread, &seen.run).await;
        assert_eq!(text(&shown["status"]), "success", "{shown}");
        assert_eq!(web.talk(2, &seen.thread).await, story.talk());
        web.goes_on(1, &seen.thread).await;
    }
    eprintln!(
        "stopped after {stopped:.1?}; went on elsewhere: {}",
        spread(times.clone())
    );
    assert_eq!(times.len(), runs / 2);
    let longest = if gives_figures() {
        stopped + HANDED_OVER_WITHIN
    } else {
        lease
    };
    assert!(times.iter().all(|took| *took < longest), "{times:?}");
}
