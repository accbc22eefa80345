//! Three gateways while nothing goes wrong: what one of them made, all of them know.

use std::time::{Duration, Instant};

use deerflow_tests::dice::setting;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::follower::join;
use crate::rig::{
    Cluster, Story, Web, body, gives_figures, launch, messages, on_postgres, p99, spread, text,
    through_redis,
};

/// So many runs are cancelled side by side.
const AT_ONCE: usize = 4;
/// With fewer cancels the slowest one would decide what 99 of 100 do not exceed.
const CANCELS_OF_A_FIGURE: u64 = 100;

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn a_run_made_on_one_node_is_read_listed_and_joined_on_another() {
    let cluster = Cluster::of(3).await;
    let web = &cluster.web;
    let story = Story::new("all", 60, Duration::from_millis(20)).held_after(10);
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    assert!(matches!(
        text(&web.run(1, &thread, &run).await["status"]),
        "pending" | "running"
    ));
    assert_eq!(
        web.get(2, &format!("/threads/{thread}/runs")).await[0]["run_id"],
        run.as_str()
    );
    assert_eq!(
        web.get(2, &format!("/threads/{thread}")).await["status"],
        "busy"
    );
    let path = format!("/threads/{thread}/runs/{run}/join");
    let release = async { cluster.model.release() };
    let (seen, waited, ()) = tokio::join!(
        join(web.clone(), 1, thread.clone(), run.clone()),
        web.get(2, &path),
        release
    );
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
    let rounds = if gives_figures() {
        setting("ROUNDS", 0).max(CANCELS_OF_A_FIGURE)
    } else {
        setting("ROUNDS", 12)
    };
    let cancels = stream::iter(0..rounds).map(|round| cancelled_elsewhere(&cluster.web, round));
    let taken: Vec<_> = cancels.buffer_unordered(AT_ONCE).collect().await;
    let times: Vec<_> = taken.iter().map(|(took, _)| *took).collect();
    let late = taken
        .iter()
        .filter(|(_, status)| status == "success")
        .count();
    eprintln!(
        "cancelled on another node: {}, {late} after the end",
        spread(times.clone())
    );
    if gives_figures() {
        let most = p99(times);
        assert!(most < Duration::from_secs(1), "p99 {most:?}");
    }
    assert_eq!(cluster.model.rejections(), 0);
}

/// Cancels a run on the node that does not have it; gives how long that took, and how the run ended.
async fn cancelled_elsewhere(web: &Web, round: u64) -> (Duration, String) {
    let action = if round % 3 == 2 {
        "rollback"
    } else {
        "interrupt"
    };
    // Every fourth is about to end by itself when it is cancelled, the others never do.
    let words = if round % 4 == 3 { 15 } else { 500 };
    let story =
        Story::new(&format!("cut{round}"), words, Duration::from_millis(20)).held_after(300);
    let thread = web.thread(0).await;
    let run = web.background(0, &thread, &body(&story.prompt)).await;
    let viewer = join(web.clone(), 1, thread.clone(), run.clone());
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(300 + 37 * (round % 16))).await;
        let begun = Instant::now();
        let path = format!("/threads/{thread}/runs/{run}/cancel?wait=true&action={action}");
        let (status, told) = web
            .try_ask(1, Method::POST, &path, &json!({}))
            .await
            .expect("answer");
        assert!(!status.is_server_error(), "round {round}: {status} {told}");
        (begun.elapsed(), status)
    };
    let (seen, (took, status)) = tokio::join!(viewer, cancel);
    assert_eq!(seen.unnumbered, ["end"], "round {round}");
    seen.is_numbered();
    let ended = web
        .ended(1, &thread, &run)
        .await
        .map_or_else(|| "gone".to_owned(), |run| text(&run["status"]).to_owned());
    let said = web.talk(1, &thread).await;
    match &*ended {
        "success" => assert_eq!(said, story.talk(), "round {round}"),
        "interrupted" => assert!(
            said.len() == 1 || story.text.starts_with(&said[1].1),
            "round {round}: {said:?}"
        ),
        "gone" => assert!(
            action == "rollback" && said.is_empty(),
            "round {round}: {said:?}"
        ),
        other => panic!("round {round}: {other}"),
    }
    assert!(
        words < 500 || (ended != "success" && status.is_success()),
        "round {round}: {status}, {ended}"
    );
    web.goes_on(1, &thread).await;
    (took, ended)
}

#[tokio::test]
#[ignore = "needs two servers; tests/cluster/run.sh starts them"]
async fn who_keeps_streams_to_itself_is_refused_beside_others_and_keeps_others_out() {
    let cluster = Cluster::of(1).await;
    let refused = launch(&cluster.model.base_url, &cluster.store(), &[])
        .await
        .expect_err("must not start")
        .to_string();
    assert!(refused.contains("stream_bridge.type"), "{refused}");
    let thread = cluster.web.thread(0).await;
    cluster.web.goes_on(0, &thread).await;

    let alone = Cluster::with(1, &on_postgres()).await;
    for sections in [alone.store(), alone.store() + &through_redis()] {
        let refused = launch(&alone.model.base_url, &sections, &[])
            .await
            .expect_err("must not start")
            .to_string();
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
    let (status, answer) = web
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
    web.goes_on(1, &thread).await;
}
