//! Random nodes are repeatedly killed or frozen while many runs are active.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use tokio::task::JoinSet;

use crate::follower::start_and_follow;
use crate::rig::{Cluster, ScriptedReply, limit, spread};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn random_node_deaths_lose_no_acknowledged_run() {
    let mut cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let runs = usize::try_from(setting("RUNS", 20)).expect("few");
    let (mut rounds, mut acknowledged, mut times) = (0, 0, Vec::new());
    for seed in seeds(3) {
        eprintln!("seed {seed}");
        let mut random = SeededRandom::of(seed);
        let mut following = JoinSet::new();
        let mut replies = Vec::new();
        for index in 0..runs {
            let node = random.below(3);
            let reply = ScriptedReply::new(
                &format!("s{seed}r{index}"),
                20 + random.below(80),
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
        tokio::time::sleep(random.millis(200, 3_000)).await;
        let killed = Instant::now();
        match random.below(3) {
            0 => {
                cluster
                    .pause(random.below(3), random.millis(5_000, 16_000))
                    .await
            }
            _ => {
                let away = random.millis(0, 14_000);
                cluster.cut(random.below(3), away).await;
            }
        }
        while let Some(observed) = following.join_next().await {
            let Some(observed) = observed.expect("no panic") else {
                continue;
            };
            acknowledged += 1;
            let reply = &replies
                .iter()
                .find(|(thread, _)| *thread == observed.thread)
                .expect("known")
                .1;
            observed.is_whole(reply);
            times.extend(observed.taken_over_after(killed));
            assert_eq!(
                gateways
                    .run(random.below(3), &observed.thread, &observed.run)
                    .await["status"],
                "success"
            );
            reply.assert_matches(
                &gateways
                    .visible_messages(random.below(3), &observed.thread)
                    .await,
            );
        }
        for (thread, _) in &replies {
            gateways.accepts_new_run(random.below(3), thread).await;
        }
        rounds += 1;
    }
    eprintln!(
        "{rounds} rounds, {acknowledged} acknowledged runs, none lost; taken over: {}",
        spread(times.clone())
    );
    assert!(
        times
            .iter()
            .all(|took| *took < limit(Duration::from_secs(20))),
        "{times:?}"
    );
    assert_eq!(cluster.model.rejections(), 0);
}
