//! Tests of the events of tasks, debug mode and callbacks, and of their order.

use super::*;

#[tokio::test]
async fn task_events_come_in_pairs_and_name_their_calls() {
    let frames = rig().frames(say(TOOL_TURN), &[StreamMode::Tasks]).await;
    let names: Vec<&str> = frames
        .iter()
        .map(|(_, task)| task["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["model", "model", "tools", "tools", "model", "model"]
    );
    for pair in frames.chunks(2) {
        assert_eq!(
            keys(&pair[0].1),
            ["id", "name", "input", "triggers", "metadata"]
        );
        assert_eq!(
            keys(&pair[1].1),
            ["id", "name", "error", "result", "interrupts"]
        );
        assert_eq!(pair[0].1["id"], pair[1].1["id"]);
    }
    assert_eq!(frames[2].1["triggers"], json!(["__pregel_push"]));
    assert_eq!(
        frames[2].1["input"][0]["args"],
        json!({ "command": "echo hi" })
    );
    assert_eq!(frames[3].1["result"]["messages"][0]["content"], "hi");
    assert_eq!(
        frames[4].1["input"]["messages"].as_array().unwrap().len(),
        3
    );
}

#[tokio::test]
async fn parallel_calls_are_separate_tasks() {
    let both = r#"[[tools:[{"name":"ask_clarification","args":{"question":"p?"}},{"name":"bash","args":{"command":"echo q"}}]]] then say x"#;
    let rig = rig();
    let frames = rig
        .frames(say(both), &[StreamMode::Tasks, StreamMode::Updates])
        .await;
    let tools: Vec<&Value> = frames
        .iter()
        .filter(|(_, task)| task["name"] == "tools")
        .map(|(_, task)| task)
        .collect();
    assert_eq!(tools.len(), 4);
    assert_ne!(tools[0]["id"], tools[1]["id"]);
    let interrupted = &tools[2]["interrupts"][0];
    assert_eq!(
        (&interrupted["value"], &tools[2]["result"]),
        (&json!({ "question": "p?" }), &json!({}))
    );
    assert_eq!(
        frames.last().unwrap().1["__interrupt__"],
        json!([interrupted])
    );
    let updates: Vec<&(String, Value)> = frames
        .iter()
        .filter(|(event, _)| event == "updates")
        .collect();
    assert_eq!(keys(&updates[1].1), ["tools"]);
    let waiting = rig.history().await;
    let next = &waiting.last().unwrap().meta.next;
    assert_eq!(
        (next.len(), &next[0].id),
        (1, &tools[0]["id"].as_str().unwrap().to_owned())
    );
}

#[tokio::test]
async fn debug_mode_reports_checkpoints_and_tasks_per_step() {
    let frames = rig().frames(say("then say a"), &[StreamMode::Debug]).await;
    let described: Vec<(i64, &str)> = frames
        .iter()
        .map(|(_, frame)| {
            (
                frame["step"].as_i64().unwrap(),
                frame["type"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        described,
        [
            (-1, "checkpoint"),
            (0, "checkpoint"),
            (1, "task"),
            (1, "task_result"),
            (1, "checkpoint")
        ]
    );
    let first = &frames[0].1["payload"];
    assert_eq!(
        keys(first),
        [
            "config",
            "parent_config",
            "values",
            "metadata",
            "next",
            "tasks",
            "checkpoint",
            "parent_checkpoint"
        ]
    );
    assert_eq!(
        (&first["values"], &first["parent_config"]),
        (&json!({ "messages": [] }), &Value::Null)
    );
    assert_eq!(
        frames[4].1["payload"]["parent_checkpoint"],
        frames[1].1["payload"]["checkpoint"]
    );
}

#[tokio::test]
async fn modes_have_a_fixed_order_within_a_step() {
    let modes = [
        StreamMode::Values,
        StreamMode::Updates,
        StreamMode::Tasks,
        StreamMode::Checkpoints,
    ];
    let frames = rig().frames(say("then say a"), &modes).await;
    let names: Vec<&str> = frames.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(
        names,
        [
            "checkpoints",
            "values",
            "checkpoints",
            "tasks",
            "tasks",
            "updates",
            "values",
            "checkpoints"
        ]
    );
}

#[tokio::test]
async fn events_start_and_end_with_the_run_and_are_nested() {
    let frames = rig().frames(say(TOOL_TURN), &[StreamMode::Events]).await;
    let mut described: Vec<(&str, &str, usize)> = Vec::new();
    for (_, event) in &frames {
        assert_eq!(
            keys(event),
            [
                "event",
                "data",
                "name",
                "tags",
                "run_id",
                "metadata",
                "parent_ids"
            ]
        );
        let depth = event["parent_ids"].as_array().unwrap().len();
        let line = (
            event["event"].as_str().unwrap(),
            event["name"].as_str().unwrap(),
            depth,
        );
        if described.last() != Some(&line) {
            described.push(line);
        }
    }
    let model = frames
        .iter()
        .find(|(_, event)| event["event"] == "on_chat_model_start")
        .unwrap()
        .1["name"]
        .as_str()
        .unwrap();
    let model_call_events = [
        ("on_chain_start", "model", 1),
        ("on_chat_model_start", model, 2),
        ("on_chat_model_stream", model, 2),
        ("on_chat_model_end", model, 2),
        ("on_chain_stream", "model", 1),
        ("on_chain_end", "model", 1),
    ];
    let tool_call_events = [
        ("on_chain_start", "tools", 1),
        ("on_tool_start", "bash", 2),
        ("on_tool_end", "bash", 2),
        ("on_chain_stream", "tools", 1),
        ("on_chain_end", "tools", 1),
    ];
    let (begin, end) = (
        [("on_chain_start", CONFORMANCE, 0)],
        [("on_chain_end", CONFORMANCE, 0)],
    );
    let expected: Vec<_> = begin
        .into_iter()
        .chain(model_call_events)
        .chain(tool_call_events)
        .chain(model_call_events)
        .chain(end)
        .collect();
    assert_eq!(described, expected);
}

#[tokio::test]
async fn nested_events_are_sent_only_with_subgraphs() {
    let spec = || say(r#"[[tool:task {"prompt":"then say inside"}]] then say outside"#);
    let modes = [
        StreamMode::Values,
        StreamMode::MessagesTuple,
        StreamMode::Updates,
    ];
    let silent = rig().frames(spec(), &modes).await;
    assert!(silent.iter().all(|(event, _)| !event.contains('|')));
    let frames = rig()
        .frames(
            RunRequest {
                stream_subgraphs: true,
                ..spec()
            },
            &modes,
        )
        .await;
    let inside: Vec<&(String, Value)> = frames
        .iter()
        .filter(|(event, _)| event.contains("|tools:"))
        .collect();
    let mut names: Vec<&str> = inside
        .iter()
        .map(|(event, _)| event.split('|').next().unwrap())
        .collect();
    names.dedup();
    assert_eq!(names, ["values", "messages", "updates", "values"]);
    assert_eq!(texts(&inside[0].1), ["then say inside"]);
    assert_eq!(
        texts(&inside.last().unwrap().1),
        ["then say inside", "inside"]
    );
}
