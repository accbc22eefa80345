//! Gateways that are partitioned from their servers while they run.

use std::time::Duration;

use deerflow_tests::fault_proxy::Faults;
use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use tokio::task::JoinSet;

use crate::follower::start_and_follow;
use crate::rig::{Cluster, ScriptedReply};
use crate::servers::{Server, ServerProxies};

const PARTITIONED: Faults = Faults {
    partitioned: true,
    delay: Duration::ZERO,
    slice: 0,
    lost_answers: 0,
};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn partitioned_gateway_loses_and_repeats_nothing() {
    let (proxies, sections) = ServerProxies::of(3, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let gateways = cluster.gateways.clone();
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    for seed in seeds(1) {
        let mut random = SeededRandom::of(seed);
        for cut in [
            &[Server::Postgres][..],
            &[Server::Redis],
            &[Server::Postgres, Server::Redis],
        ] {
            let (at, away) = (random.below(3), random.millis(3_000, 16_000));
            eprintln!("seed {seed}: gateway {at} without {cut:?} for {away:?}");
            let mut following = JoinSet::new();
            let mut replies = Vec::new();
            for index in 0..runs {
                let node = random.below(3);
                let reply = ScriptedReply::new(
                    &format!("p{seed}r{index}"),
                    40 + random.below(60),
                    Duration::from_millis(60),
                );
                let reply = if index % 2 == 0 {
                    reply
                } else {
                    reply.after_a_tool()
                };
                let thread = gateways.thread(node).await;
                following.spawn(start_and_follow(
                    gateways.clone(),
                    node,
                    thread.clone(),
                    reply.clone(),
                ));
                replies.push((thread, reply));
            }
            tokio::time::sleep(random.millis(300, 2_500)).await;
            proxies[at].set(cut, &PARTITIONED);
            tokio::time::sleep(away).await;
            proxies[at].set(cut, &Faults::default());
            while let Some(observed) = following.join_next().await {
                let observed = observed
                    .expect("no panic")
                    .expect("acknowledged: no connection was cut yet");
                let reply = &replies
                    .iter()
                    .find(|(thread, _)| *thread == observed.thread)
                    .expect("known")
                    .1;
                match cut {
                    // A client that is notified of a gap reads the thread when the run is over.
                    [_, _] if observed.has_a_gap() => drop(
                        gateways
                            .ended((at + 1) % 3, &observed.thread, &observed.run)
                            .await,
                    ),
                    [_, _] => observed.is_whole_except_replaced_tail(reply),
                    _ => observed.is_whole(reply),
                }
                assert_eq!(
                    gateways
                        .run((at + 1) % 3, &observed.thread, &observed.run)
                        .await["status"],
                    "success"
                );
                reply.assert_matches(
                    &gateways
                        .visible_messages((at + 2) % 3, &observed.thread)
                        .await,
                );
            }
            for (thread, _) in &replies {
                gateways.accepts_new_run(random.below(3), thread).await;
            }
        }
    }
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn slow_stream_server_does_not_delay_runs() {
    let (proxies, sections) = ServerProxies::of(1, 1).await;
    let cluster = Cluster::each(&sections).await;
    let gateways = cluster.gateways.clone();
    let delay = Faults {
        delay: Duration::from_millis(250),
        slice: 1_024,
        ..Faults::default()
    };
    proxies[0].set(&[Server::Redis], &delay);
    let reply = ScriptedReply::new("slow", 200, Duration::from_millis(20));
    let thread = gateways.thread(0).await;
    let started = std::time::Instant::now();
    let run = gateways
        .background(0, &thread, &crate::rig::body(&reply.prompt))
        .await;
    let stored = gateways.ended(0, &thread, &run).await.expect("a run");
    let took = started.elapsed();
    assert_eq!(stored["status"], "success");
    assert_eq!(
        gateways.visible_messages(0, &thread).await,
        reply.visible_messages()
    );
    eprintln!("200 tokens of 20 ms with a Redis that needs half a second: {took:.1?}");
    // A round trip per token would cost half a second each.
    assert!(took < Duration::from_secs(40), "{took:?}");
}
