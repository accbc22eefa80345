//! Three gateways without faults: each serves what another one created.

use std::time::{Duration, Instant};

use deerflow_tests::seeded_random::setting;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::follower::join;
use crate::rig::{
    Cluster, Gateways, ScriptedReply, body, launch, measures_times, messages, on_postgres, p99,
    spread, text, through_redis,
};

/// Number of runs that are cancelled concurrently.
const CONCURRENT_CANCELS: usize = 4;
/// With fewer cancels the slowest one would decide the 99th percentile.
const CANCELS_OF_A_FIGURE: u64 = 100;

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn run_is_readable_listable_and_joinable_on_other_nodes() {
    let cluster = Cluster::of(3).await;
    let gateways = &cluster.gateways;
    let reply = ScriptedReply::new("all", 60, Duration::from_millis(20)).held_after(10);
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    assert!(matches!(
        text(&gateways.run(1, &thread, &run).await["status"]),
        "pending" | "running"
    ));
    assert_eq!(
        gateways.get(2, &format!("/threads/{thread}/runs")).await[0]["run_id"],
        run.as_str()
    );
    assert_eq!(
        gateways.get(2, &format!("/threads/{thread}")).await["status"],
        "busy"
    );
    let path = format!("/threads/{thread}/runs/{run}/join");
    let release = async { cluster.model.release() };
    let (observed, waited, ()) = tokio::join!(
        join(gateways.clone(), 1, thread.clone(), run.clone()),
        gateways.get(2, &path),
        release
    );
    observed.is_whole(&reply);
    assert_eq!(messages(&waited), reply.visible_messages());
    for node in 0..3 {
        assert_eq!(gateways.run(node, &thread, &run).await["status"], "success");
        assert_eq!(
            gateways.visible_messages(node, &thread).await,
            reply.visible_messages()
        );
    }
    for node in 0..3 {
        gateways.accepts_new_run(node, &thread).await;
    }
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn cancel_on_another_node_applies_within_a_second() {
    let cluster = Cluster::of(2).await;
    let rounds = if measures_times() {
        setting("ROUNDS", 0).max(CANCELS_OF_A_FIGURE)
    } else {
        setting("ROUNDS", 12)
    };
    let cancels =
        stream::iter(0..rounds).map(|round| cancelled_elsewhere(&cluster.gateways, round));
    let cancelled: Vec<_> = cancels.buffer_unordered(CONCURRENT_CANCELS).collect().await;
    let times: Vec<_> = cancelled.iter().map(|(took, _)| *took).collect();
    let after_end = cancelled
        .iter()
        .filter(|(_, status)| status == "success")
        .count();
    eprintln!(
        "cancelled on another node: {}, {after_end} after the end",
        spread(times.clone())
    );
    if measures_times() {
        let slowest = p99(times);
        assert!(slowest < Duration::from_secs(1), "p99 {slowest:?}");
    }
    assert_eq!(cluster.model.rejections(), 0);
}

/// Cancels a run on a node that does not execute it; returns the time and how the run ended.
async fn cancelled_elsewhere(gateways: &Gateways, round: u64) -> (Duration, String) {
    let action = if round % 3 == 2 {
        "rollback"
    } else {
        "interrupt"
    };
    // Every fourth run is about to end when it is cancelled, the others never end.
    let words = if round % 4 == 3 { 15 } else { 500 };
    let reply = ScriptedReply::new(&format!("cut{round}"), words, Duration::from_millis(20))
        .held_after(300);
    let thread = gateways.thread(0).await;
    let run = gateways.background(0, &thread, &body(&reply.prompt)).await;
    let viewer = join(gateways.clone(), 1, thread.clone(), run.clone());
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300 + 37 * (round % 16))).await;
        let started = Instant::now();
        let path = format!("/threads/{thread}/runs/{run}/cancel?wait=true&action={action}");
        let (status, actual) = gateways
            .try_ask(1, Method::POST, &path, &json!({}))
            .await
            .expect("answer");
        assert!(
            !status.is_server_error(),
            "round {round}: {status} {actual}"
        );
        (started.elapsed(), status)
    };
    let (observed, (took, status)) = tokio::join!(viewer, cancel);
    assert_eq!(observed.unnumbered, ["end"], "round {round}");
    observed.is_numbered();
    let ended = gateways
        .ended(1, &thread, &run)
        .await
        .map_or_else(|| "gone".to_owned(), |run| text(&run["status"]).to_owned());
    let transcript = gateways.visible_messages(1, &thread).await;
    match &*ended {
        "success" => assert_eq!(transcript, reply.visible_messages(), "round {round}"),
        "interrupted" => assert!(
            transcript.len() == 1 || reply.text.starts_with(&transcript[1].1),
            "round {round}: {transcript:?}"
        ),
        "gone" => assert!(
            action == "rollback" && transcript.is_empty(),
            "round {round}: {transcript:?}"
        ),
        other => panic!("round {round}: {other}"),
    }
    assert!(
        words < 500 || (ended != "success" && status.is_success()),
        "round {round}: {status}, {ended}"
    );
    gateways.accepts_new_run(1, &thread).await;
    (took, ended)
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn node_with_local_streams_and_other_nodes_exclude_each_other() {
    let cluster = Cluster::of(1).await;
    let refused = launch(&cluster.model.base_url, &cluster.store(), &[])
        .await
        .expect_err("must not start")
        .to_string();
    assert!(refused.contains("stream_bridge.type"), "{refused}");
    let thread = cluster.gateways.thread(0).await;
    cluster.gateways.accepts_new_run(0, &thread).await;

    let single_node = Cluster::with(1, &on_postgres()).await;
    for sections in [single_node.store(), single_node.store() + &through_redis()] {
        let refused = launch(&single_node.model.base_url, &sections, &[])
            .await
            .expect_err("must not start")
            .to_string();
        assert!(refused.contains("stream_bridge.type"), "{refused}");
    }
    let thread = single_node.gateways.thread(0).await;
    single_node.gateways.accepts_new_run(0, &thread).await;
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn restarted_node_serves_runs_created_meanwhile() {
    let mut cluster = Cluster::of(2).await;
    let gateways = cluster.gateways.clone();
    let thread = gateways.thread(0).await;
    cluster.nodes[1].kill9().await.expect("killed");
    gateways.accepts_new_run(0, &thread).await;
    cluster.nodes[1].restart().await.expect("healthy again");
    assert_eq!(
        gateways.visible_messages(1, &thread).await,
        gateways.visible_messages(0, &thread).await
    );
    let (status, answer) = gateways
        .try_ask(
            1,
            Method::GET,
            &format!("/threads/{thread}/runs"),
            &Value::Null,
        )
        .await
        .expect("answer");
    assert_eq!(
        (status.as_u16(), text(&answer[0]["status"])),
        (200, "success")
    );
    gateways.accepts_new_run(1, &thread).await;
}
