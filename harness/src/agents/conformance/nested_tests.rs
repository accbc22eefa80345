//! Agents inside of calls: what is saved of them, and what viewers get.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};

use super::wire_tests::*;
use crate::runtime::checkpoint::{Snapshot, nested_at};
use crate::runtime::runs::{
    CancelAction, CheckpointRef, Durability, RunInput, RunSpec, StreamMode,
};
use crate::runtime::stream_bridge::StreamItem;

/// A call of an agent that is told `prompt`.
fn task(prompt: &str) -> String {
    format!(
        "[[tool:task {}]] then say outside",
        json!({ "prompt": prompt })
    )
}

fn ask_inside(tool: &str, args: Value) -> String {
    task(&format!("[[tool:{tool} {args}]] then say inside"))
}

fn viewed(spec: RunSpec) -> RunSpec {
    RunSpec {
        stream_subgraphs: true,
        ..spec
    }
}

fn resume(answer: Value) -> RunSpec {
    go(RunInput::Resume(answer))
}

/// The agent inside of the first task that is due at a checkpoint.
fn inside(snapshot: &Snapshot) -> Snapshot {
    nested_at(&snapshot.meta, &snapshot.meta.next[0].namespace())
        .unwrap()
        .0
}

fn spoken(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .state
        .messages()
        .iter()
        .map(|message| message.content.text())
        .collect()
}

#[tokio::test]
async fn checkpoints_and_tasks_inside_come_in_the_recorded_order() {
    let modes = [StreamMode::Checkpoints, StreamMode::Tasks];
    let frames = house()
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
    let silent = house().frames(say(&task("then say inside")), &modes).await;
    assert!(silent.iter().all(|(event, _)| !event.contains('|')));
}

#[tokio::test]
async fn a_checkpoint_inside_names_what_it_is_inside_of() {
    let frames = house()
        .frames(viewed(say(&task("then say inside"))), &[StreamMode::Debug])
        .await;
    let payloads = |inside: bool| {
        let wanted = move |(event, data): &&(String, Value)| {
            event.contains('|') == inside && data["type"] == "checkpoint"
        };
        frames
            .iter()
            .filter(wanted)
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
        let place = &payload["checkpoint"];
        let namespace = place["checkpoint_ns"].as_str().unwrap();
        assert!(namespace.starts_with("tools:"));
        assert_eq!(payload["metadata"]["parents"], json!({ "": outer }));
        assert_eq!(
            place["checkpoint_map"],
            json!({ "": outer, namespace: place["checkpoint_id"] })
        );
        assert_eq!(
            payload["config"]["configurable"]["checkpoint_map"],
            place["checkpoint_map"]
        );
    }
}

#[tokio::test]
async fn what_an_agent_reached_stays_with_the_checkpoint_at_which_its_call_was_due() {
    let house = house();
    house.wait(say(&task("then say inside"))).await;
    let history = house.history().await;
    assert_eq!(history.len(), 5);
    assert_eq!(spoken(&inside(&history[2])), ["then say inside", "inside"]);
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
async fn an_agent_inside_that_asks_goes_on_from_its_question() {
    let house = house();
    let spec = say(&ask_inside(
        "ask_twice",
        json!({ "first": "a?", "second": "b?" }),
    ));
    let asked = house.wait(spec).await;
    let held = house.history().await;
    let (outer, inner) = (held.last().unwrap(), inside(held.last().unwrap()));
    assert_eq!(
        asked["__interrupt__"][0]["value"],
        json!({ "question": "a?" })
    );
    assert_eq!(outer.meta.next[0].interrupts, inner.meta.next[0].interrupts);
    assert_eq!(inner.meta.next[0].name, "tools");
    let before = spoken(&inner);

    let again = house.wait(resume(json!("A"))).await;
    assert_eq!(
        again["__interrupt__"][0]["value"],
        json!({ "question": "b?" })
    );
    assert_ne!(
        again["__interrupt__"][0]["id"],
        asked["__interrupt__"][0]["id"]
    );
    assert_eq!(
        spoken(&inside(house.history().await.last().unwrap())),
        before
    );

    let id = again["__interrupt__"][0]["id"].as_str().unwrap();
    let done = house.wait(resume(json!({ id: "B" }))).await;
    assert_eq!(texts(&done)[2..], ["inside", "outside"]);
    assert_eq!(house.history().await.len(), 5);
}

#[tokio::test]
async fn several_questions_inside_are_asked_one_after_the_other() {
    let house = house();
    let calls = json!([
        { "name": "ask_clarification", "args": { "question": "a?" } },
        { "name": "ask_clarification", "args": { "question": "b?" } },
    ]);
    house
        .wait(say(&task(&format!("[[tools:{calls}]] then say inside"))))
        .await;
    let open = |snapshot: &Snapshot| {
        inside(snapshot)
            .meta
            .next
            .iter()
            .flat_map(|task| task.interrupts.clone())
            .count()
    };
    assert_eq!(open(house.history().await.last().unwrap()), 2);
    let again = house.wait(resume(json!("A"))).await;
    assert_eq!(again["__interrupt__"].as_array().unwrap().len(), 1);
    assert_eq!(
        again["__interrupt__"][0]["value"],
        json!({ "question": "b?" })
    );
    assert_eq!(
        texts(&house.wait(resume(json!("B"))).await)[2..],
        ["inside", "outside"]
    );
}

#[tokio::test]
async fn another_answer_can_be_given_where_the_question_was_asked() {
    let house = house();
    house
        .wait(say(&ask_inside(
            "ask_clarification",
            json!({ "question": "which?" }),
        )))
        .await;
    let asked = house
        .history()
        .await
        .last()
        .unwrap()
        .meta
        .checkpoint_id
        .clone();
    for answer in ["red", "blue"] {
        let spec = RunSpec {
            checkpoint: Some(CheckpointRef {
                checkpoint_id: asked.clone(),
            }),
            ..viewed(resume(json!(answer)))
        };
        let frames = house.frames(spec, &[StreamMode::Values]).await;
        let last = &frames
            .iter()
            .rfind(|(event, _)| event.starts_with("values|"))
            .unwrap()
            .1;
        assert_eq!(texts(last)[2..], [answer, "inside"]);
        assert_eq!(texts(&frames.last().unwrap().1)[2..], ["inside", "outside"]);
    }
}

#[tokio::test]
async fn a_checkpoint_kept_for_the_end_has_the_agent_inside() {
    let house = house();
    let spec = say(&ask_inside(
        "ask_clarification",
        json!({ "question": "which?" }),
    ));
    house
        .wait(RunSpec {
            durability: Durability::Exit,
            ..spec
        })
        .await;
    assert_eq!(
        inside(house.history().await.last().unwrap())
            .meta
            .next
            .len(),
        1
    );
    assert_eq!(
        texts(&house.wait(resume(json!("red"))).await)[2..],
        ["inside", "outside"]
    );
}

/// Begins a run and cancels it at the first token from inside.
async fn cancelled_inside(house: &House, spec: RunSpec, action: CancelAction) {
    let spec = viewed(RunSpec {
        stream_modes: [StreamMode::MessagesTuple].into_iter().collect(),
        ..spec
    });
    let (record, mut stream) = house
        .0
        .create_and_stream(spec, Duration::from_secs(60))
        .await
        .unwrap();
    while let Some(item) = stream.items.next().await {
        if matches!(item, StreamItem::Event(event) if event.event.starts_with("messages|") && event.data.clone().into_bytes().windows(4).any(|part| part == b"tok3"))
        {
            break;
        }
    }
    house
        .0
        .cancel(None, &record.run_id, action, true)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_agent_inside_that_was_stopped_goes_on_where_it_stood() {
    let house = house();
    let prompt = r#"[[tool:bash {"command":"echo hi"}]] [[slow 40x20ms]]"#;
    cancelled_inside(&house, say(&task(prompt)), CancelAction::Interrupt).await;
    let held = inside(house.history().await.last().unwrap());
    assert_eq!(
        (spoken(&held)[2..].to_vec(), held.meta.next[0].name.as_str()),
        (vec!["hi".to_owned()], "model")
    );
    let frames = house
        .frames(viewed(go(RunInput::Continue)), &[StreamMode::Updates])
        .await;
    let nodes: Vec<&str> = frames
        .iter()
        .filter(|(event, _)| event.contains('|'))
        .flat_map(|(_, update)| keys(update))
        .collect();
    assert_eq!(nodes, ["model"]);
}

#[tokio::test]
async fn a_rollback_leaves_the_agent_inside_at_its_question() {
    let house = house();
    house
        .wait(say(&task(
            r#"[[tool:ask_clarification {"question":"which?"}]] [[slow 40x20ms]]"#,
        )))
        .await;
    let before = house.history().await;
    cancelled_inside(&house, resume(json!("red")), CancelAction::Rollback).await;
    let after = house.history().await;
    assert_eq!(after.last().unwrap().meta, before.last().unwrap().meta);
    assert_eq!(
        spoken(&inside(after.last().unwrap())),
        spoken(&inside(before.last().unwrap()))
    );
}

#[tokio::test]
async fn agents_inside_of_agents_inside_are_kept_and_heard() {
    let house = house();
    let prompt = format!(
        "[[tool:task {}]] then say between",
        json!({ "prompt": r#"[[tool:ask_clarification {"question":"which?"}]] then say deepest"# })
    );
    let modes = [
        StreamMode::Values,
        StreamMode::Checkpoints,
        StreamMode::MessagesTuple,
    ];
    let frames = house.frames(viewed(say(&task(&prompt))), &modes).await;
    let outer = house.history().await.pop().unwrap();
    let (first, second) = (
        outer.meta.next[0].namespace(),
        inside(&outer).meta.next[0].namespace(),
    );
    assert!(
        frames
            .iter()
            .any(|(event, _)| *event == format!("values|{first}|{second}"))
    );
    let (deepest, place) = nested_at(&outer.meta, &format!("{first}|{second}")).unwrap();
    assert_eq!(
        deepest.meta.next[0].interrupts,
        outer.meta.next[0].interrupts
    );
    let told = frames
        .iter()
        .rfind(|(event, _)| *event == format!("checkpoints|{first}|{second}"))
        .unwrap();
    assert_eq!(
        told.1["config"]["configurable"]["checkpoint_map"],
        place.map(Some(&deepest.meta.checkpoint_id)).unwrap()
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
    let done = house.wait(resume(json!("red"))).await;
    assert_eq!(texts(&done)[2..], ["between", "outside"]);
    // Where it asked it stays as it asked, so that it can be answered otherwise.
    assert_eq!(
        inside(&house.history().await[2]).meta.next[0].namespace(),
        second
    );
}

#[tokio::test]
async fn callbacks_inside_have_the_call_above_them() {
    let frames = house()
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
    let told: Vec<&str> = inner
        .iter()
        .map(|data| data["event"].as_str().unwrap())
        .filter(|event| !event.ends_with("stream"))
        .collect();
    let (agent, model) = (
        ["on_chain_start", "on_chain_end"],
        ["on_chat_model_start", "on_chat_model_end"],
    );
    assert_eq!(
        told,
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
