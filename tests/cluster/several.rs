//! Three gateways while nothing goes wrong: what one of them made, all of them know.

use std::time::{Duration, Instant};

use deerflow_tests::dice::setting;
use reqwest::Method;
use serde_json::{Value, json};

use crate::follower::join;
use crate::rig::{Cluster, Story, body, launch, messages, on_postgres, spread, text, through_redis};

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_run_made_on_one_node_is_read_listed_and_joined_on_another() {
    let cluster = Cluster::of(3).await;
    let web = &cluster.web;
    let story = Story::new("all", 60, Duration::from_millis(20));
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    assert!(matches!(text(&web.run(1, &thread, &run).await["status"]), "pending" | "running"));
    assert_eq!(web.get(2, &format!("/threads/{thread}/runs")).await[0]["run_id"], run.as_str());
    assert_eq!(web.get(2, &format!("/threads/{thread}")).await["status"], "busy");
    let path = format!("/threads/{thread}/runs/{run}/join");
    let (seen, waited) = tokio::join!(join(web.clone(), 1, thread.clone(), run.clone()), web.get(2, &path));
    seen.is_whole(&story);
    assert_eq!(messages(&waited), story.talk());
    for node in 0..3 {
        assert_eq!(web.run(node, &thread, &run).await["status"], "success");
        assert_eq!(web.talk(node, &thread).await, story.talk());
    }
    for node in 0..3 {
        web.goes_on(node, &thread).await;
    }
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_cancel_on_another_node_works_within_a_second() {
    let cluster = Cluster::of(2).await;
    let web = &cluster.web;
    let mut times = Vec::new();
    for round in 0..setting("ROUNDS", 10) {
        let story = Story::new("cut", 500, Duration::from_millis(20));
        let thread = web.thread(0).await;
        let run = web.background(0, &thread, &body(&story.prompt)).await;
        let viewer = join(web.clone(), 1, thread.clone(), run.clone());
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(300 + 37 * (round % 16))).await;
            let begun = Instant::now();
            let path = format!("/threads/{thread}/runs/{run}/cancel?wait=true&action=interrupt");
            web.post(1, &path, &json!({})).await;
            begun.elapsed()
        };
        let (seen, took) = tokio::join!(viewer, cancel);
        times.push(took);
        assert!(took < Duration::from_secs(1), "round {round}: {took:?}");
        seen.is_numbered();
        assert_eq!(seen.unnumbered, ["end"]);
        assert_eq!(web.run(1, &thread, &run).await["status"], "interrupted");
        let said = web.talk(1, &thread).await;
        assert!(said.len() == 1 || story.text.starts_with(&said[1].1), "{said:?}");
        web.goes_on(1, &thread).await;
    }
    eprintln!("cancelled on another node: {}", spread(times));
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn who_keeps_streams_to_itself_is_refused_beside_others_and_keeps_others_out() {
    let cluster = Cluster::of(1).await;
    let refused = launch(&cluster.model.base_url, &cluster.store()).await.expect_err("must not start").to_string();
    assert!(refused.contains("stream_bridge.type"), "{refused}");
    let thread = cluster.web.thread(0).await;
    cluster.web.goes_on(0, &thread).await;

    let alone = Cluster::with(1, &on_postgres()).await;
    for sections in [alone.store(), alone.store() + &through_redis()] {
        let refused = launch(&alone.model.base_url, &sections).await.expect_err("must not start").to_string();
        assert!(refused.contains("stream_bridge.type"), "{refused}");
    }
    let thread = alone.web.thread(0).await;
    alone.web.goes_on(0, &thread).await;
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_node_that_comes_back_serves_what_others_made_meanwhile() {
    let mut cluster = Cluster::of(2).await;
    let web = cluster.web.clone();
    let thread = web.thread(0).await;
    cluster.nodes[1].kill9().await.expect("killed");
    web.goes_on(0, &thread).await;
    cluster.nodes[1].restart().await.expect("healthy again");
    assert_eq!(web.talk(1, &thread).await, web.talk(0, &thread).await);
    let (status, answer) = web.try_ask(1, Method::GET, &format!("/threads/{thread}/runs"), &Value::Null).await.expect("answer");
    assert_eq!((status.as_u16(), text(&answer[0]["status"])), (200, "success"));
    web.goes_on(1, &thread).await;
}
