//! Timeline of a flow's run: the states of its nodes, also of a run in progress and after a restart.

use serde_json::{Value, json};

use crate::flows::{CHAIN, held, store};
use crate::rig::{Rig, body, text, until};

async fn nodes(rig: &Rig, thread: &str, run: &str) -> Value {
    let path = format!("/threads/{thread}/runs/{run}/nodes");
    rig.get(&path).await.ok()
}

fn node<'a>(timeline: &'a Value, id: &str) -> &'a Value {
    let nodes = timeline["nodes"].as_array().expect("nodes");
    nodes
        .iter()
        .find(|node| node["nodeId"] == id)
        .unwrap_or_else(|| panic!("no node {id}: {timeline}"))
}

fn statuses(timeline: &Value) -> Vec<(&str, &str)> {
    let nodes = timeline["nodes"].as_array().expect("nodes").iter();
    nodes
        .map(|node| (text(&node["nodeId"]), text(&node["status"])))
        .collect()
}

#[tokio::test]
async fn timeline_states_each_node_of_a_run() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let thread = rig.thread().await;
    let ask = json!({"assistant_id": "flow-chain", "input": {"userPrompt": "[[usage 11,7]] then say polished"}});
    let first = rig.run(&thread, &ask).await.run;
    let timeline = nodes(&rig, &thread, &first).await;
    let expected = [
        ("draft", "completed"),
        ("gate", "waiting"),
        ("polish", "idle"),
        ("finish", "idle"),
    ];
    assert_eq!(statuses(&timeline), expected, "{timeline}");
    let draft = node(&timeline, "draft");
    assert_eq!(draft["usage"]["totalTokens"], 18, "{draft}");
    assert_eq!(
        (&draft["visit"], &draft["attempts"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(draft["agentId"], "first");
    assert_eq!(draft["finalText"], draft["portOutputs"]["out"]);
    assert!(
        draft["durationMs"].is_u64() && draft["startedAt"].is_string(),
        "{draft}"
    );
    assert_eq!(draft["visits"][0]["status"], "completed");
    assert!(!draft["promptSources"].as_array().expect("parts").is_empty());
    let answer = json!({"assistant_id": "flow-chain", "command": {"resume": "yes"}});
    let second = rig.run(&thread, &answer).await.run;
    let timeline = nodes(&rig, &thread, &second).await;
    assert_eq!(node(&timeline, "gate")["visits"][0]["action"], "yes");
    assert_eq!(node(&timeline, "polish")["status"], "completed");
    assert_eq!(
        node(&timeline, "draft")["status"],
        "idle",
        "it did not run again"
    );
    assert_eq!(timeline["is_incomplete"], false);
    let deerflow = format!("/api/threads/{thread}/runs/{second}/nodes");
    assert_eq!(rig.get(&deerflow).await.ok(), timeline);
}

#[tokio::test]
async fn timeline_of_a_run_in_progress_survives_a_power_cut() {
    let mut rig = Rig::start().await;
    store(&rig, "chain", &held()).await;
    let thread = rig.thread().await;
    let ask = json!({"assistant_id": "flow-chain", "input": {"userPrompt": "go"}});
    let run = rig.background(&thread, &ask).await;
    let running = async |rig: &Rig| {
        until("the second node", async || {
            let timeline = nodes(rig, &thread, &run).await;
            (node(&timeline, "polish")["status"] == "running").then_some(timeline)
        })
        .await
    };
    let before = running(&rig).await;
    assert_eq!(before["status"], "running");
    assert_eq!(node(&before, "polish")["agentId"], "second");
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("healthy again");
    let after = running(&rig).await;
    assert_eq!(node(&after, "draft"), node(&before, "draft"));
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    let end = nodes(&rig, &thread, &run).await;
    let polish = node(&end, "polish");
    assert_eq!(polish["status"], "completed");
    assert_eq!(
        polish["visits"].as_array().map(Vec::len),
        Some(1),
        "{polish}"
    );
}

#[tokio::test]
async fn cancelled_run_leaves_no_node_running() {
    let rig = Rig::start().await;
    store(&rig, "chain", &held()).await;
    let thread = rig.thread().await;
    let ask = json!({"assistant_id": "flow-chain", "input": {"userPrompt": "go"}});
    let run = rig.background(&thread, &ask).await;
    until("the second node", async || {
        let timeline = nodes(&rig, &thread, &run).await;
        (node(&timeline, "polish")["status"] == "running").then_some(())
    })
    .await;
    let cancel = format!("/threads/{thread}/runs/{run}/cancel?wait=1");
    rig.post(&cancel, &json!({})).await;
    assert_eq!(rig.wait_for_end(&thread, &run).await, "interrupted");
    let end = nodes(&rig, &thread, &run).await;
    assert_eq!(node(&end, "polish")["status"], "cancelled", "{end}");
    assert_eq!(node(&end, "finish")["status"], "idle");
}

#[tokio::test]
async fn timeline_of_another_agent_is_empty_and_unknown_runs_are_404() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig.run(&thread, &body("then say hello")).await.run;
    assert_eq!(nodes(&rig, &thread, &run).await["nodes"], json!([]));
    let other = rig.thread().await;
    for path in [
        format!("/threads/{other}/runs/{run}/nodes"),
        format!("/threads/{thread}/runs/{other}/nodes"),
        format!("/threads/{run}/runs/{run}/nodes"),
    ] {
        assert_eq!(rig.get(&path).await.status.as_u16(), 404, "{path}");
    }
}
