//! Postgres and Redis are killed and started again while runs are live.

use std::time::{Duration, Instant};

use deerflow_tests::dice::{Dice, seeds, setting};
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::follower::{join, tell};
use crate::rig::{Cluster, Story, body, spread};
use crate::servers::Server;

/// Runs that are told while a server is away for some time, and what all must see of them afterwards.
async fn survives(server: Server, away: impl Fn(&mut Dice) -> Duration, rounds: u64) {
    let cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    let mut over = Vec::new();
    for seed in seeds(rounds) {
        let mut dice = Dice::of(seed);
        let (mut telling, mut stories) = (JoinSet::new(), Vec::new());
        for place in 0..runs {
            let node = dice.below(3);
            let story = Story::new(
                &format!("o{seed}r{place}"),
                20 + dice.below(80),
                Duration::from_millis(40),
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
        let away = away(&mut dice);
        eprintln!("seed {seed}: {server:?} is away for {away:?}");
        let outage = server.kill();
        tokio::time::sleep(away).await;
        outage.end();
        let back = Instant::now();
        while let Some(seen) = telling.join_next().await {
            let seen = seen
                .expect("no panic")
                .expect("acknowledged: nothing was away yet");
            let story = &stories
                .iter()
                .find(|(thread, _)| *thread == seen.thread)
                .expect("known")
                .1;
            seen.is_whole(story);
            assert_eq!(
                web.run(dice.below(3), &seen.thread, &seen.run).await["status"],
                "success"
            );
            story.is_told_by(&web.talk(dice.below(3), &seen.thread).await);
        }
        over.push(back.elapsed());
        for (thread, _) in &stories {
            web.goes_on(dice.below(3), thread).await;
        }
    }
    eprintln!("all over after the server was back: {}", spread(over));
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn nothing_is_lost_when_the_database_is_killed_and_started_again() {
    survives(Server::Postgres, |dice| dice.millis(0, 3_000), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn nothing_is_lost_when_the_stream_server_is_killed_and_started_again() {
    survives(Server::Redis, |dice| dice.millis(0, 8_000), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn without_the_stream_server_runs_are_taken_in_worked_on_and_shown_by_their_node() {
    let cluster = Cluster::of(2).await;
    let web = cluster.web.clone();
    let outage = Server::Redis.kill();
    let story = Story::new("alone", 60, Duration::from_millis(20));
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let seen = join(web.clone(), 0, thread.clone(), run.clone()).await;
    seen.is_whole(&story);
    for node in 0..2 {
        assert_eq!(web.run(node, &thread, &run).await["status"], "success");
        assert_eq!(web.talk(node, &thread).await, story.talk());
    }
    for node in 0..2 {
        web.goes_on(node, &thread).await;
    }
    outage.end();
    // What was made meanwhile reaches viewers of other nodes once the server is back.
    let seen = join(web.clone(), 1, thread.clone(), run.clone()).await;
    assert_eq!(
        seen.unnumbered.last().map(String::as_str),
        Some("end"),
        "{seen:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn reads_do_not_notice_that_the_database_ended_every_session() {
    let cluster = Cluster::of(1).await;
    let web = cluster.web.clone();
    let thread = web.thread(0).await;
    web.goes_on(0, &thread).await;
    for round in 0..setting("ROUNDS", 5) {
        // As a failover does: all sessions end at once, and the server answers again at once.
        Server::Postgres.kill().end();
        let mut asking = JoinSet::new();
        for _ in 0..20 {
            let (web, thread) = (web.clone(), thread.clone());
            asking.spawn(async move {
                let path = format!("/threads/{thread}/state");
                web.try_ask(0, Method::GET, &path, &Value::Null)
                    .await
                    .expect("answer")
                    .0
                    .as_u16()
            });
        }
        let statuses = asking.join_all().await;
        assert!(
            statuses.iter().all(|status| *status == 200),
            "round {round}: {statuses:?}"
        );
        web.goes_on(0, &thread).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_hear_of_the_end_when_the_stream_server_and_the_owner_are_gone() {
    let mut cluster = Cluster::of(3).await;
    let web = cluster.web.clone();
    let story = Story::new("gone", 100, Duration::from_millis(40));
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let mut viewing = JoinSet::new();
    for node in [1, 2] {
        viewing.spawn(join(web.clone(), node, thread.clone(), run.clone()));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let outage = Server::Redis.kill();
    cluster.nodes[0].kill9().await.expect("killed");
    let ended = tokio::time::timeout(Duration::from_secs(60), viewing.join_all())
        .await
        .expect("nobody waits for ever");
    for seen in ended {
        assert!(
            matches!(&*seen.unnumbered.join(" "), "end" | "gap end"),
            "{seen:?}"
        );
    }
    assert_eq!(web.run(1, &thread, &run).await["status"], "success");
    assert_eq!(web.talk(2, &thread).await, story.talk());
    outage.end();
    web.goes_on(1, &thread).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_on_the_other_node_follow_live_runs_while_the_stream_server_is_away() {
    let cluster = Cluster::of(2).await;
    let web = cluster.web.clone();
    let (mut viewing, mut stories) = (JoinSet::new(), Vec::new());
    for place in 0..setting("RUNS", 6) {
        let story = Story::new(&format!("far{place}"), 120, Duration::from_millis(40));
        let story = if place % 2 == 0 {
            story
        } else {
            story.after_a_tool()
        };
        let thread = web.thread(0).await;
        let run = web.background(0, &thread, &body(&story.prompt)).await;
        viewing.spawn(join(web.clone(), 1, thread.clone(), run));
        stories.push((thread, story));
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let outage = Server::Redis.kill();
    // Longer than the runs: their ends come while the server is away.
    let ended = tokio::time::timeout(Duration::from_secs(30), viewing.join_all())
        .await
        .expect("nobody waits for the server");
    outage.end();
    for seen in ended {
        let (_, story) = stories
            .iter()
            .find(|(thread, _)| *thread == seen.thread)
            .expect("known");
        seen.is_whole(story);
        assert_eq!(seen.connections.len(), 1, "nobody was sent away: {seen:?}");
        // What was shown meanwhile is what the server has afterwards.
        join(web.clone(), 1, seen.thread.clone(), seen.run.clone())
            .await
            .is_whole(story);
    }
    for (thread, _) in &stories {
        web.goes_on(1, thread).await;
    }
}
