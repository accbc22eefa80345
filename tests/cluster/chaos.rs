//! Random nodes are killed or frozen while many runs are live, again and again.

use std::time::{Duration, Instant};

use deerflow_tests::dice::{Dice, seeds, setting};
use tokio::task::JoinSet;

use crate::follower::tell;
use crate::rig::{Cluster, Story, limit, spread};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn no_acknowledged_run_is_lost_however_nodes_die() {
    let mut cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let runs = usize::try_from(setting("RUNS", 20)).expect("few");
    let (mut rounds, mut acknowledged, mut times) = (0, 0, Vec::new());
    for seed in seeds(3) {
        eprintln!("seed {seed}");
        let mut dice = Dice::of(seed);
        let mut telling = JoinSet::new();
        let mut stories = Vec::new();
        for place in 0..runs {
            let node = dice.below(3);
            let story = Story::new(
                &format!("s{seed}r{place}"),
                20 + dice.below(80),
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
        tokio::time::sleep(dice.millis(200, 3_000)).await;
        let killed = Instant::now();
        match dice.below(3) {
            0 => {
                cluster
                    .pause(dice.below(3), dice.millis(5_000, 16_000))
                    .await
            }
            _ => {
                let away = dice.millis(0, 14_000);
                cluster.cut(dice.below(3), away).await;
            }
        }
        while let Some(seen) = telling.join_next().await {
            let Some(seen) = seen.expect("no panic") else {
                continue;
            };
            acknowledged += 1;
            let story = &stories
                .iter()
                .find(|(thread, _)| *thread == seen.thread)
                .expect("known")
                .1;
            seen.is_whole(story);
            times.extend(seen.taken_over_after(killed));
            assert_eq!(
                web.run(dice.below(3), &seen.thread, &seen.run).await["status"],
                "success"
            );
            story.is_told_by(&web.talk(dice.below(3), &seen.thread).await);
        }
        for (thread, _) in &stories {
            web.goes_on(dice.below(3), thread).await;
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
