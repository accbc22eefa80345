//! Gateways that are cut off from what they stand on while they live.

use std::time::Duration;

use deerflow_tests::dice::{Dice, seeds, setting};
use deerflow_tests::fault_proxy::Faults;
use tokio::task::JoinSet;

use crate::follower::tell;
use crate::rig::{Cluster, Story};
use crate::servers::{Server, Ways};

const PARTITIONED: Faults = Faults {
    partitioned: true,
    delay: Duration::ZERO,
    slice: 0,
    lost_answers: 0,
};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_gateway_cut_off_from_its_servers_loses_and_repeats_nothing() {
    let (ways, sections) = Ways::of(3, setting("SEED", 1)).await;
    let cluster = Cluster::each(&sections).await;
    let web = cluster.web.clone();
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    for seed in seeds(1) {
        let mut dice = Dice::of(seed);
        for cut in [
            &[Server::Postgres][..],
            &[Server::Redis],
            &[Server::Postgres, Server::Redis],
        ] {
            let (at, away) = (dice.below(3), dice.millis(3_000, 16_000));
            eprintln!("seed {seed}: gateway {at} without {cut:?} for {away:?}");
            let mut telling = JoinSet::new();
            let mut stories = Vec::new();
            for place in 0..runs {
                let node = dice.below(3);
                let story = Story::new(
                    &format!("p{seed}r{place}"),
                    40 + dice.below(60),
                    Duration::from_millis(60),
                );
                let story = if place % 2 == 0 {
                    story
                } else {
                    story.after_a_tool()
                };
                let thread = web.thread(node).await;
                telling.spawn(tell(web.clone(), node, thread.clone(), story.clone()));
                stories.push((thread, story));
            }
            tokio::time::sleep(dice.millis(300, 2_500)).await;
            ways[at].set(cut, &PARTITIONED);
            tokio::time::sleep(away).await;
            ways[at].set(cut, &Faults::default());
            while let Some(seen) = telling.join_next().await {
                let seen = seen
                    .expect("no panic")
                    .expect("acknowledged: nothing was cut yet");
                let story = &stories
                    .iter()
                    .find(|(thread, _)| *thread == seen.thread)
                    .expect("known")
                    .1;
                match cut {
                    // Told that something is missing, a client reads the thread when the run is over.
                    [_, _] if seen.has_a_gap() => {
                        drop(web.ended((at + 1) % 3, &seen.thread, &seen.run).await)
                    }
                    [_, _] => seen.is_whole_but_for_what_was_taken_back(story),
                    _ => seen.is_whole(story),
                }
                assert_eq!(
                    web.run((at + 1) % 3, &seen.thread, &seen.run).await["status"],
                    "success"
                );
                story.is_told_by(&web.talk((at + 2) % 3, &seen.thread).await);
            }
            for (thread, _) in &stories {
                web.goes_on(dice.below(3), thread).await;
            }
        }
    }
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_slow_stream_server_does_not_slow_a_run_down() {
    let (ways, sections) = Ways::of(1, 1).await;
    let cluster = Cluster::each(&sections).await;
    let web = cluster.web.clone();
    let delay = Faults {
        delay: Duration::from_millis(250),
        slice: 1_024,
        ..Faults::default()
    };
    ways[0].set(&[Server::Redis], &delay);
    let story = Story::new("slow", 200, Duration::from_millis(20));
    let thread = web.thread(0).await;
    let begun = std::time::Instant::now();
    let run = web
        .background(0, &thread, &crate::rig::body(&story.prompt))
        .await;
    let shown = web.ended(0, &thread, &run).await.expect("a run");
    let took = begun.elapsed();
    assert_eq!(shown["status"], "success");
    assert_eq!(web.talk(0, &thread).await, story.talk());
    eprintln!("200 words of 20 ms with a Redis that needs half a second: {took:.1?}");
    // Each word that waited for an answer would cost half a second.
    assert!(took < Duration::from_secs(40), "{took:?}");
}
