//! A run's owner that dies, freezes or is stopped: other nodes resume its runs, once.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::setting;
use tokio::task::JoinSet;

use crate::follower::{join, start_and_follow};
use crate::rig::{
    Cluster, ScriptedReply, body, limit, measures_times, on_postgres, p99, spread, text,
    through_redis,
};

/// Maximum time of a takeover: lease, sweep, and delivery to the viewer.
pub(crate) const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(15);
/// Maximum time to resume a released run after its node has stopped: notification of other nodes
/// and delivery to the viewer.
const RESUMED_WITHIN: Duration = Duration::from_secs(5);

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn client_gets_rest_from_other_node_after_owner_kill() {
    let mut cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let mut times = Vec::new();
    for round in 0..setting("ROUNDS", 2) {
        let reply = ScriptedReply::new(&format!("kill{round}"), 100, Duration::from_millis(50));
        let thread = gateways.thread(0).await;
        let mut following = JoinSet::new();
        following.spawn(start_and_follow(
            gateways.clone(),
            0,
            thread.clone(),
            reply.clone(),
        ));
        tokio::time::sleep(Duration::from_millis(2_000)).await;
        let killed = Instant::now();
        cluster.nodes[0].kill9().await.expect("killed");
        let observed = following
            .join_next()
            .await
            .expect("one")
            .expect("no panic")
            .expect("acknowledged");
        observed.is_whole(&reply);
        let took = observed.taken_over_after(killed).expect("another attempt");
        eprintln!("round {round}: taken over after {took:.1?}");
        times.push(took);
        assert_eq!(
            gateways.run(1, &thread, &observed.run).await["status"],
            "success"
        );
        assert_eq!(
            gateways.visible_messages(2, &thread).await,
            reply.visible_messages()
        );
        cluster.nodes[0].restart().await.expect("healthy again");
        gateways.accepts_new_run(0, &thread).await;
    }
    eprintln!("taken over: {}", spread(times.clone()));
    let slowest = p99(times);
    assert!(slowest < limit(TAKEN_OVER_WITHIN), "p99 {slowest:?}");
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn frozen_owner_writes_nothing_after_takeover() {
    let cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let away = setting("FROZEN_SECONDS", 15);
    let words = usize::try_from(away * 10 + 50).expect("few");
    let reply = ScriptedReply::new("frozen", words, Duration::from_millis(100));
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let mut viewers = JoinSet::new();
    viewers.spawn(join(gateways.clone(), 1, thread.clone(), run.clone()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let frozen = Instant::now();
    cluster.nodes[0].freeze().expect("frozen");
    tokio::time::sleep(Duration::from_secs(away)).await;
    cluster.nodes[0].thaw().expect("thawed");
    // The thawed node serves viewers too and receives the events of the others.
    viewers.spawn(join(gateways.clone(), 0, thread.clone(), run.clone()));
    let mut soonest = Duration::MAX;
    while let Some(observed) = viewers.join_next().await {
        let observed = observed.expect("no panic");
        observed.is_whole(&reply);
        assert_eq!(
            observed.attempts.keys().copied().max(),
            Some(2),
            "taken over once"
        );
        // A viewer that joined later observed the takeover later.
        soonest = soonest.min(observed.taken_over_after(frozen).expect("another attempt"));
    }
    eprintln!("taken over after {soonest:.1?}");
    assert!(soonest < limit(TAKEN_OVER_WITHIN), "{soonest:?}");
    for node in 0..3 {
        assert_eq!(gateways.run(node, &thread, &run).await["status"], "success");
        assert_eq!(
            gateways.visible_messages(node, &thread).await,
            reply.visible_messages()
        );
    }
    assert_eq!(cluster.model.requests().len(), 2, "one call each");
    gateways.accepts_new_run(0, &thread).await;
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn stopping_node_releases_runs_within_seconds() {
    // No lease expires during the test: a run that resumes elsewhere was released.
    let lease = Duration::from_secs(300);
    let own = format!(
        "runs: {{shutdown_grace_seconds: 15}}\nrun_ownership: {{lease_seconds: {}}}\n",
        lease.as_secs()
    );
    let mut cluster = Cluster::with(3, &(on_postgres() + &through_redis() + &own)).await;
    let gateways = cluster.gateways.clone();
    let runs = usize::try_from(setting("RUNS", 10)).expect("few");
    let mut following = JoinSet::new();
    let mut replies = Vec::new();
    for index in 0..runs {
        // Some runs end while the node waits for them, some do not.
        let reply = ScriptedReply::new(
            &format!("stop{index}"),
            if index % 2 == 0 { 30 } else { 60 },
            Duration::from_millis(100),
        );
        let reply = if index % 2 == 0 {
            reply
        } else {
            reply.held_after(30)
        };
        let thread = gateways.thread(0).await;
        following.spawn(start_and_follow(
            gateways.clone(),
            0,
            thread.clone(),
            reply.clone(),
        ));
        replies.push((thread, reply));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let stopping = Instant::now();
    let status = cluster.nodes[0].terminate().await.expect("stopped in time");
    assert!(status.success(), "{status}");
    let stopped = stopping.elapsed();
    cluster.model.release();
    let mut times = Vec::new();
    while let Some(observed) = following.join_next().await {
        let observed = observed.expect("no panic").expect("acknowledged");
        let reply = &replies
            .iter()
            .find(|(thread, _)| *thread == observed.thread)
            .expect("known")
            .1;
        observed.is_whole(reply);
        times.extend(observed.taken_over_after(stopping));
        let stored = gateways.run(1, &observed.thread, &observed.run).await;
        assert_eq!(text(&stored["status"]), "success", "{stored}");
        assert_eq!(
            gateways.visible_messages(2, &observed.thread).await,
            reply.visible_messages()
        );
        gateways.accepts_new_run(1, &observed.thread).await;
    }
    eprintln!(
        "stopped after {stopped:.1?}; resumed elsewhere: {}",
        spread(times.clone())
    );
    assert_eq!(times.len(), runs / 2);
    let longest = if measures_times() {
        stopped + RESUMED_WITHIN
    } else {
        lease
    };
    assert!(times.iter().all(|took| *took < longest), "{times:?}");
}
