//! Nested agents: their saved state, and the events that subscribers receive.

#[path = "nested_resume_tests.rs"]
mod resume;

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::wire_tests::*;
use crate::runtime::checkpoint::{Snapshot, nested_at};
use crate::runtime::runs::{
    CancelAction, CheckpointRef, Durability, RunInput, RunRequest, StreamMode,
};
use crate::runtime::stream_bridge::StreamItem;

/// Message that starts a nested agent with `prompt`.
fn task(prompt: &str) -> String {
    format!(
        "[[tool:task {}]] then say outside",
        json!({ "prompt": prompt })
    )
}

fn ask_inside(tool: &str, args: Value) -> String {
    task(&format!("[[tool:{tool} {args}]] then say inside"))
}

fn viewed(spec: RunRequest) -> RunRequest {
    RunRequest {
        stream_subgraphs: true,
        ..spec
    }
}

fn resume(answer: Value) -> RunRequest {
    go(RunInput::Resume(answer))
}

/// State of the nested agent in the first pending task of a checkpoint.
fn inside(snapshot: &Snapshot) -> Snapshot {
    nested_at(&snapshot.meta, &snapshot.meta.next[0].namespace())
        .unwrap()
        .0
}

fn answer_texts(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .state
        .messages()
        .iter()
        .map(|message| message.content.text())
        .collect()
}

#[tokio::test]
async fn nested_checkpoints_and_tasks_match_the_recorded_order() {
    let modes = [StreamMode::Checkpoints, StreamMode::Tasks];
    let frames = rig()
        .frames(viewed(say(&task("then say inside"))), &modes)
        .await;
    let names: Vec<String> = frames
        .iter()
        .map(|(event, _)| {
            event
                .replace(char::is_numeric, "")
                .split(':')
                .next()
                .unwrap()
                .to_owned()
        })
        .collect();
    let recorded = [
        "checkpoints",
        "checkpoints",
        "tasks",
        "tasks",
        "checkpoints",
        "tasks",
        "checkpoints|tools",
        "checkpoints|tools",
        "tasks|tools",
        "tasks|tools",
        "checkpoints|tools",
        "tasks",
        "checkpoints",
        "tasks",
        "tasks",
        "checkpoints",
    ];
    assert_eq!(names, recorded);
    let silent = rig().frames(say(&task("then say inside")), &modes).await;
    assert!(silent.iter().all(|(event, _)| !event.contains('|')));
}

#[tokio::test]
async fn nested_checkpoint_names_its_parent() {
    let frames = rig()
        .frames(viewed(say(&task("then say inside"))), &[StreamMode::Debug])
        .await;
    let payloads = |inside: bool| {
        let matching = move |(event, data): &&(String, Value)| {
            event.contains('|') == inside && data["type"] == "checkpoint"
        };
        frames
            .iter()
            .filter(matching)
            .map(|(_, data)| &data["payload"])
            .collect::<Vec<_>>()
    };
    let outer = payloads(false)[2]["checkpoint"]["checkpoint_id"].clone();
    let inner = payloads(true);
    assert_eq!(
        inner
            .iter()
            .map(|payload| payload["metadata"]["step"].as_i64().unwrap())
            .collect::<Vec<_>>(),
        [-1, 0, 1]
    );
    assert_eq!(inner[0]["values"], json!({ "messages": [] }));
    assert_eq!(
        (&inner[0]["parent_config"], &inner[0]["parent_checkpoint"]),
        (&Value::Null, &Value::Null)
    );
    for pair in inner.windows(2) {
        assert_eq!(pair[1]["parent_checkpoint"], pair[0]["checkpoint"]);
    }
    for payload in inner {
        let target = &payload["checkpoint"];
        let namespace = target["checkpoint_ns"].as_str().unwrap();
        assert!(namespace.starts_with("tools:"));
        assert_eq!(payload["metadata"]["parents"], json!({ "": outer }));
        assert_eq!(
            target["checkpoint_map"],
            json!({ "": outer, namespace: target["checkpoint_id"] })
        );
        assert_eq!(
            payload["config"]["configurable"]["checkpoint_map"],
            target["checkpoint_map"]
        );
    }
}

#[tokio::test]
async fn nested_state_is_stored_with_the_checkpoint_of_its_call() {
    let rig = rig();
    rig.wait(say(&task("then say inside"))).await;
    let history = rig.history().await;
    assert_eq!(history.len(), 5);
    assert_eq!(
        answer_texts(&inside(&history[2])),
        ["then say inside", "inside"]
    );
    assert!(inside(&history[2]).meta.next.is_empty());
    assert!(
        history[3]
            .meta
            .next
            .iter()
            .all(|task| task.nested.is_none())
    );
}

#[tokio::test]
async fn deeply_nested_agents_are_saved_and_emit_events() {
    let rig = rig();
    let prompt = format!(
        "[[tool:task {}]] then say between",
        json!({ "prompt": r#"[[tool:ask_clarification {"question":"which?"}]] then say deepest"# })
    );
    let modes = [
        StreamMode::Values,
        StreamMode::Checkpoints,
        StreamMode::MessagesTuple,
    ];
    let frames = rig.frames(viewed(say(&task(&prompt))), &modes).await;
    let outer = rig.history().await.pop().unwrap();
    let (first, second) = (
        outer.meta.next[0].namespace(),
        inside(&outer).meta.next[0].namespace(),
    );
    assert!(
        frames
            .iter()
            .any(|(event, _)| *event == format!("values|{first}|{second}"))
    );
    let (deepest, target) = nested_at(&outer.meta, &format!("{first}|{second}")).unwrap();
    assert_eq!(
        deepest.meta.next[0].interrupts,
        outer.meta.next[0].interrupts
    );
    let described = frames
        .iter()
        .rfind(|(event, _)| *event == format!("checkpoints|{first}|{second}"))
        .unwrap();
    assert_eq!(
        described.1["config"]["configurable"]["checkpoint_map"],
        target.map(Some(&deepest.meta.checkpoint_id)).unwrap()
    );
    let meta = &frames
        .iter()
        .rfind(|(event, _)| *event == format!("messages|{first}|{second}"))
        .unwrap()
        .1[1];
    assert_eq!(meta["checkpoint_ns"], format!("{first}|{second}"));
    assert!(
        meta["langgraph_checkpoint_ns"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{first}|{second}|model:"))
    );
    let done = rig.wait(resume(json!("red"))).await;
    assert_eq!(texts(&done)[2..], ["between", "outside"]);
    // The question stays open at its checkpoint, so that it can get another answer.
    assert_eq!(
        inside(&rig.history().await[2]).meta.next[0].namespace(),
        second
    );
}

#[tokio::test]
async fn nested_callbacks_have_the_call_as_parent() {
    let frames = rig()
        .frames(viewed(say(&task("then say inside"))), &[StreamMode::Events])
        .await;
    assert!(frames.iter().all(|(event, _)| event == "events"));
    let inner: Vec<&Value> = frames
        .iter()
        .map(|(_, data)| data)
        .filter(|data| data["parent_ids"].as_array().unwrap().len() > 2)
        .collect();
    let tool = frames
        .iter()
        .find(|(_, data)| data["event"] == "on_tool_start")
        .unwrap()
        .1["run_id"]
        .clone();
    assert!(inner.iter().all(|data| data["parent_ids"][2] == tool));
    let described: Vec<&str> = inner
        .iter()
        .map(|data| data["event"].as_str().unwrap())
        .filter(|event| !event.ends_with("stream"))
        .collect();
    let (agent, model) = (
        ["on_chain_start", "on_chain_end"],
        ["on_chat_model_start", "on_chat_model_end"],
    );
    assert_eq!(
        described,
        [agent[0], agent[0], model[0], model[1], agent[1], agent[1]]
    );
    let spaces = inner
        .iter()
        .filter_map(|data| data["metadata"]["langgraph_checkpoint_ns"].as_str());
    assert!(
        spaces.clone().count() > 0
            && spaces
                .clone()
                .all(|space| space.starts_with("tools:") && space.contains("|model:"))
    );
}
