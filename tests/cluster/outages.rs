//! Postgres and Redis are killed and restarted while runs are active.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::{SeededRandom, seeds, setting};
use reqwest::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::follower::{join, start_and_follow};
use crate::rig::{Cluster, ScriptedReply, body, spread};
use crate::servers::Server;

/// Streams runs while a server is down for some time, and checks what clients observe afterwards.
async fn check_outage(server: Server, away: impl Fn(&mut SeededRandom) -> Duration, rounds: u64) {
    let cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let runs = usize::try_from(setting("RUNS", 12)).expect("few");
    let mut over = Vec::new();
    for seed in seeds(rounds) {
        let mut random = SeededRandom::of(seed);
        let (mut following, mut replies) = (JoinSet::new(), Vec::new());
        for index in 0..runs {
            let node = random.below(3);
            let reply = ScriptedReply::new(
                &format!("o{seed}r{index}"),
                20 + random.below(80),
                Duration::from_millis(40),
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
        let away = away(&mut random);
        eprintln!("seed {seed}: {server:?} is away for {away:?}");
        let outage = server.kill();
        tokio::time::sleep(away).await;
        outage.end();
        let back = Instant::now();
        while let Some(observed) = following.join_next().await {
            let observed = observed
                .expect("no panic")
                .expect("acknowledged: no server was down yet");
            let reply = &replies
                .iter()
                .find(|(thread, _)| *thread == observed.thread)
                .expect("known")
                .1;
            observed.is_whole(reply);
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
        over.push(back.elapsed());
        for (thread, _) in &replies {
            gateways.accepts_new_run(random.below(3), thread).await;
        }
    }
    eprintln!("all runs ended after the server was back: {}", spread(over));
    assert_eq!(cluster.model.rejections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn database_kill_and_restart_loses_nothing() {
    check_outage(Server::Postgres, |random| random.millis(0, 3_000), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn stream_server_kill_and_restart_loses_nothing() {
    check_outage(Server::Redis, |random| random.millis(0, 8_000), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn runs_work_on_their_node_without_stream_server() {
    let cluster = Cluster::of(2).await;
    let gateways = cluster.gateways.clone();
    let outage = Server::Redis.kill();
    let reply = ScriptedReply::new("alone", 60, Duration::from_millis(20));
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let observed = join(gateways.clone(), 0, thread.clone(), run.clone()).await;
    observed.is_whole(&reply);
    for node in 0..2 {
        assert_eq!(gateways.run(node, &thread, &run).await["status"], "success");
        assert_eq!(
            gateways.visible_messages(node, &thread).await,
            reply.visible_messages()
        );
    }
    for node in 0..2 {
        gateways.accepts_new_run(node, &thread).await;
    }
    outage.end();
    // Events of the outage reach viewers of other nodes once the server is back.
    let observed = join(gateways.clone(), 1, thread.clone(), run.clone()).await;
    assert_eq!(
        observed.unnumbered.last().map(String::as_str),
        Some("end"),
        "{observed:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn reads_survive_termination_of_all_database_sessions() {
    let cluster = Cluster::of(1).await;
    let gateways = cluster.gateways.clone();
    let thread = gateways.thread(0).await;
    gateways.accepts_new_run(0, &thread).await;
    for round in 0..setting("ROUNDS", 5) {
        // As in a failover: all sessions end, and the server accepts connections again at once.
        Server::Postgres.kill().end();
        let mut requests = JoinSet::new();
        for _ in 0..20 {
            let (gateways, thread) = (gateways.clone(), thread.clone());
            requests.spawn(async move {
                let path = format!("/threads/{thread}/state");
                gateways
                    .try_ask(0, Method::GET, &path, &Value::Null)
                    .await
                    .expect("answer")
                    .0
                    .as_u16()
            });
        }
        let statuses = requests.join_all().await;
        assert!(
            statuses.iter().all(|status| *status == 200),
            "round {round}: {statuses:?}"
        );
        gateways.accepts_new_run(0, &thread).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn viewers_get_end_without_stream_server_and_owner() {
    let mut cluster = Cluster::of(3).await;
    let gateways = cluster.gateways.clone();
    let reply = ScriptedReply::new("gone", 100, Duration::from_millis(40));
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let mut viewing = JoinSet::new();
    for node in [1, 2] {
        viewing.spawn(join(gateways.clone(), node, thread.clone(), run.clone()));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let outage = Server::Redis.kill();
    cluster.nodes[0].kill9().await.expect("killed");
    let ended = tokio::time::timeout(Duration::from_secs(60), viewing.join_all())
        .await
        .expect("no request waits forever");
    for observed in ended {
        assert!(
            matches!(&*observed.unnumbered.join(" "), "end" | "gap end"),
            "{observed:?}"
        );
    }
    assert_eq!(gateways.run(1, &thread, &run).await["status"], "success");
    assert_eq!(
        gateways.visible_messages(2, &thread).await,
        reply.visible_messages()
    );
    outage.end();
    gateways.accepts_new_run(1, &thread).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn remote_viewers_follow_live_runs_without_stream_server() {
    let cluster = Cluster::of(2).await;
    let gateways = cluster.gateways.clone();
    let (mut viewing, mut replies) = (JoinSet::new(), Vec::new());
    for index in 0..setting("RUNS", 6) {
        let reply = ScriptedReply::new(&format!("far{index}"), 120, Duration::from_millis(40));
        let reply = if index % 2 == 0 {
            reply
        } else {
            reply.after_a_tool()
        };
        let thread = gateways.thread(0).await;
        let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
        viewing.spawn(join(gateways.clone(), 1, thread.clone(), run));
        replies.push((thread, reply));
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let outage = Server::Redis.kill();
    // The outage is longer than the runs: they end while the server is down.
    let ended = tokio::time::timeout(Duration::from_secs(30), viewing.join_all())
        .await
        .expect("no viewer waits for the server");
    outage.end();
    for observed in ended {
        let (_, reply) = replies
            .iter()
            .find(|(thread, _)| *thread == observed.thread)
            .expect("known");
        observed.is_whole(reply);
        assert_eq!(
            observed.connections.len(),
            1,
            "no viewer was disconnected: {observed:?}"
        );
        // The server afterwards has the events that viewers received during the outage.
        join(
            gateways.clone(),
            1,
            observed.thread.clone(),
            observed.run.clone(),
        )
        .await
        .is_whole(reply);
    }
    for (thread, _) in &replies {
        gateways.accepts_new_run(1, thread).await;
    }
}
