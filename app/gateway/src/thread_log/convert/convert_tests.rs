//! Events of frames as runs publish them.

use harness::runtime::stream_bridge::EventId;

use super::*;

/// Converts frames and the end of a run. Returns channel, namespace and data of each event.
fn converted(frames: &[(&'static str, Value)], end: TerminalKind) -> Vec<(String, String, Value)> {
    let mut converter = RunConverter::new("agent");
    let mut drafts = Vec::new();
    for (seq, (name, data)) in (1..).zip(frames) {
        let frame = StreamEvent {
            id: EventId { seq, attempt: 1 },
            event: (*name).into(),
            data: Bytes::from(data.to_string()).into(),
        };
        converter.frame(&frame, &mut drafts);
    }
    drafts.extend(converter.end(end));
    drafts
        .into_iter()
        .map(|draft| {
            let data = serde_json::from_slice(&draft.data).expect("JSON");
            let channel = draft.channel.as_str().to_owned();
            (channel, draft.namespace.join("|"), data)
        })
        .collect()
}

/// Returns channel and name of each event.
fn names(events: &[(String, String, Value)]) -> Vec<String> {
    events
        .iter()
        .map(|(channel, namespace, data)| {
            let name = data["event"].as_str().unwrap_or_default();
            format!("{channel} {namespace} {name}").trim().to_owned()
        })
        .collect()
}

fn begun() -> (&'static str, Value) {
    ("metadata", json!({ "run_id": "r1", "attempt": 1 }))
}

fn fragment(fields: Value) -> Value {
    let mut chunk = json!({ "type": "AIMessageChunk", "id": "m1", "content": "" });
    let chunk_fields = chunk.as_object_mut().expect("an object");
    chunk_fields.extend(fields.as_object().cloned().expect("an object"));
    json!([chunk, { "langgraph_node": "model" }])
}

#[test]
fn text_is_streamed_in_one_block() {
    let usage = json!({ "input_tokens": 2, "output_tokens": 1, "total_tokens": 3 });
    let frames = [
        begun(),
        ("messages", fragment(json!({ "content": "one " }))),
        ("messages", fragment(json!({ "content": "two" }))),
        ("messages", fragment(json!({ "usage_metadata": usage }))),
        ("messages", fragment(json!({ "chunk_position": "last" }))),
    ];
    let events = converted(&frames, TerminalKind::End);
    let expected = [
        "lifecycle  running",
        "messages  message-start",
        "messages  content-block-start",
        "messages  content-block-delta",
        "messages  content-block-delta",
        "messages  content-block-finish",
        "messages  message-finish",
        "lifecycle  completed",
    ];
    assert_eq!(names(&events), expected);
    assert_eq!(events[1].2["id"], "m1");
    assert_eq!(
        events[3].2["delta"],
        json!({ "type": "text-delta", "text": "one " })
    );
    assert_eq!(
        events[5].2["content"],
        json!({ "type": "text", "text": "one two" })
    );
    assert_eq!(events[6].2["usage"], usage);
}

#[test]
fn fragments_with_shared_json_convert_like_whole_ones() {
    let rest = |id: &str| Bytes::from(format!(r#","type":"AIMessageChunk","id":"{id}"}},{{}}]"#));
    let (m1, m2) = (rest("m1"), rest("m2"));
    let last = Bytes::from(
        r#"[{"content":"","type":"AIMessageChunk","id":"m1","chunk_position":"last"},{}]"#,
    );
    let text = |text: &str, rest: &Bytes| {
        let head = Bytes::from(format!(r#"[{{"content":"{text}""#));
        EventData::with_tail(head, rest.clone())
    };
    let data = [
        text("one ", &m1),
        text("t\\u00e9 ", &m1),
        text("other", &m2),
        text("two", &m1),
        text("three", &m1),
        last.into(),
        text("late", &m1),
    ];
    let events = |data: Vec<EventData>| {
        let (mut converter, mut drafts) = (RunConverter::new("agent"), Vec::new());
        for (seq, data) in (1..).zip(data) {
            let id = EventId { seq, attempt: 1 };
            let event = "messages".into();
            converter.frame(&StreamEvent { id, event, data }, &mut drafts);
        }
        drafts.extend(converter.end(TerminalKind::End));
        drafts
            .into_iter()
            .map(|draft| draft.data)
            .collect::<Vec<_>>()
    };
    let whole = data.iter().map(|data| data.clone().into_bytes().into());
    assert_eq!(events(whole.collect()), events(data.to_vec()));
}

#[test]
fn parallel_calls_overlap_and_end_with_their_arguments() {
    let call = |index: u64, id: Option<&str>, name: Option<&str>, args: &str| {
        let chunk = json!({ "index": index, "id": id, "name": name, "args": args });
        ("messages", fragment(json!({ "tool_call_chunks": [chunk] })))
    };
    let frames = [
        ("messages", fragment(json!({ "content": "I check." }))),
        call(0, Some("c1"), Some("bash"), ""),
        call(0, None, None, "{\"command\""),
        call(1, Some("c2"), Some("read"), ""),
        call(0, None, None, ": \"ls\"}"),
        ("messages", fragment(json!({ "chunk_position": "last" }))),
    ];
    let events = converted(&frames, TerminalKind::End);
    let blocks: Vec<_> = events
        .iter()
        .filter(|(_, _, data)| data["index"].is_u64())
        .map(|(_, _, data)| {
            let name = data["event"].as_str().expect("a name");
            (
                name.trim_start_matches("content-block-"),
                data["index"].as_u64().expect("an index"),
            )
        })
        .collect();
    let expected = [
        ("start", 0),
        ("delta", 0),
        ("finish", 0),
        ("start", 1),
        ("delta", 1),
        ("start", 2),
        ("delta", 1),
        ("finish", 1),
        ("finish", 2),
    ];
    assert_eq!(blocks, expected);
    let finished: Vec<_> = events
        .iter()
        .filter(|(_, _, data)| data["event"] == "content-block-finish")
        .map(|(_, _, data)| data["content"].clone())
        .collect();
    assert_eq!(
        finished[1],
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "args": { "command": "ls" } })
    );
    assert_eq!(finished[2]["args"], json!({}));
}

#[test]
fn broken_arguments_are_an_invalid_call() {
    let chunk = json!({ "index": 0, "id": "c1", "name": "bash", "args": "{\"comm" });
    let frames = [
        ("messages", fragment(json!({ "tool_call_chunks": [chunk] }))),
        ("messages", fragment(json!({ "chunk_position": "last" }))),
    ];
    let events = converted(&frames, TerminalKind::End);
    let content = &events[3].2["content"];
    assert_eq!(
        (&content["type"], &content["args"]),
        (&json!("invalid_tool_call"), &json!("{\"comm"))
    );
}

#[test]
fn reasoning_is_a_block_of_its_own() {
    let thought = json!({ "reasoning_content": "hm" });
    let frames = [
        (
            "messages",
            fragment(json!({ "additional_kwargs": thought })),
        ),
        (
            "messages",
            fragment(json!({ "content": "yes", "chunk_position": "last" })),
        ),
    ];
    let events = converted(&frames, TerminalKind::End);
    let finished: Vec<_> = events
        .iter()
        .filter(|(_, _, data)| data["event"] == "content-block-finish")
        .map(|(_, _, data)| data["content"]["type"].clone())
        .collect();
    assert_eq!(finished, ["reasoning", "text"]);
}

#[test]
fn whole_answer_is_sent_as_blocks_unless_it_was_streamed() {
    let answer = json!([{ "type": "ai", "id": "m1", "content": [{ "type": "text", "text": "hi" }],
        "tool_calls": [{ "id": "c1", "name": "bash", "args": { "command": "ls" } }] }, {}]);
    let once = converted(&[("messages", answer.clone())], TerminalKind::End);
    assert_eq!(names(&once).len(), 9);
    assert_eq!(once[6].2["content"]["args"], json!({ "command": "ls" }));
    let streamed = [
        (
            "messages",
            fragment(json!({ "content": "hi", "chunk_position": "last" })),
        ),
        ("messages", answer),
    ];
    assert_eq!(converted(&streamed, TerminalKind::End).len(), 6);
}

/// Frames of a call whose tool runs a nested agent.
fn nested_call() -> Vec<(&'static str, Value)> {
    let call = json!([{ "name": "task", "args": { "subagent_type": "helper" }, "id": "c1" }]);
    let result = json!({ "type": "tool", "id": "m2", "content": "done", "tool_call_id": "c1" });
    vec![
        begun(),
        (
            "tasks",
            json!({ "id": "1", "name": "tools", "input": call }),
        ),
        ("values|tools:1", json!({ "messages": [] })),
        (
            "messages|tools:1",
            fragment(json!({ "content": "in", "chunk_position": "last" })),
        ),
        ("messages", json!([result, {}])),
        (
            "tasks",
            json!({ "id": "1", "name": "tools", "error": null, "result": { "messages": [result] }, "interrupts": [] }),
        ),
    ]
}

#[test]
fn nested_agent_starts_and_ends_within_its_call() {
    let events = converted(&nested_call(), TerminalKind::End);
    let expected = [
        "lifecycle  running",
        "tools  tool-started",
        "lifecycle tools:1 started",
        "values tools:1",
        "messages tools:1 message-start",
        "messages tools:1 content-block-start",
        "messages tools:1 content-block-delta",
        "messages tools:1 content-block-finish",
        "messages tools:1 message-finish",
        "messages tools:c1 message-start",
        "messages tools:c1 content-block-start",
        "messages tools:c1 content-block-delta",
        "messages tools:c1 content-block-finish",
        "messages tools:c1 message-finish",
        "tools  tool-finished",
        "lifecycle tools:1 completed",
        "lifecycle  completed",
    ];
    assert_eq!(names(&events), expected);
    let started = json!({ "event": "started", "graph_name": "helper", "trigger_call_id": "c1" });
    assert_eq!(events[2].2, started);
    assert_eq!(events[14].2["output"]["content"], "done");
}

#[test]
fn open_nested_agents_end_before_the_run() {
    let frames = &nested_call()[..4];
    for (end, nested, root) in [
        (TerminalKind::Cancel, "completed", "interrupted"),
        (TerminalKind::Error, "failed", "failed"),
    ] {
        let events = converted(frames, end);
        let last = &names(&events)[events.len() - 2..];
        let expected = [
            format!("lifecycle tools:1 {nested}"),
            format!("lifecycle  {root}"),
        ];
        assert_eq!(last, expected);
    }
}

#[test]
fn failed_tool_and_run_report_the_error() {
    let call = json!([{ "name": "explode", "args": {}, "id": "c1" }]);
    let frames = [
        (
            "tasks",
            json!({ "id": "1", "name": "tools", "input": call }),
        ),
        (
            "tasks",
            json!({ "id": "1", "name": "tools", "error": "boom", "result": {}, "interrupts": [] }),
        ),
        (
            "error",
            json!({ "error": "RuntimeError", "message": "boom" }),
        ),
    ];
    let events = converted(&frames, TerminalKind::Error);
    assert_eq!(events[1].2["event"], "tool-error");
    assert_eq!(events[1].2["message"], "boom");
    assert_eq!(events[2].2["error"], "boom");
}

#[test]
fn question_is_announced_once_and_interrupts_the_run() {
    let question = json!([{ "value": { "question": "which?" }, "id": "q1" }]);
    let frames = [
        ("updates", json!({ "__interrupt__": question })),
        (
            "values",
            json!({ "messages": [], "__interrupt__": question }),
        ),
    ];
    let events = converted(&frames, TerminalKind::End);
    assert_eq!(
        names(&events),
        ["updates", "input", "values", "lifecycle  interrupted"]
    );
    assert_eq!(events[0].2, json!({}));
    assert_eq!(events[1].2["interrupt_id"], "q1");
    assert_eq!(events[1].2["payload"], json!({ "question": "which?" }));
    assert_eq!(events[2].2, json!({ "messages": [] }));
}

#[test]
fn checkpoint_precedes_its_state() {
    let config = |id: &str| json!({ "configurable": { "checkpoint_id": id } });
    let checkpoint = json!({ "config": config("c2"), "parent_config": config("c1"),
        "values": {}, "metadata": { "source": "loop", "step": 1 } });
    let frames = [
        ("values", json!({ "messages": [] })),
        ("checkpoints", checkpoint),
    ];
    let events = converted(&frames, TerminalKind::End);
    assert_eq!(
        names(&events),
        ["checkpoints", "values", "lifecycle  completed"]
    );
    let position = json!({ "id": "c2", "parent_id": "c1", "step": 1, "source": "loop" });
    assert_eq!(events[0].2, position);
}

#[test]
fn custom_payloads_are_unchanged_and_tool_output_is_a_delta() {
    let output = json!({ "type": "tool_output", "tool_call_id": "c1", "tool": "bash", "stream": "stdout", "data": "x" });
    let frames = [
        ("custom", json!({ "a": 1 })),
        ("custom", json!("text")),
        ("custom", output),
    ];
    let events = converted(&frames, TerminalKind::End);
    assert_eq!(
        (&events[0].2, &events[1].2),
        (&json!({ "a": 1 }), &json!("text"))
    );
    let delta = json!({ "event": "tool-output-delta", "tool_call_id": "c1", "delta": "x" });
    assert_eq!((events[2].0.as_str(), &events[2].2), ("tools", &delta));
}

#[test]
fn unreadable_frame_has_no_event() {
    let frames = [
        ("messages", json!({ "no": "list" })),
        ("tasks", json!(5)),
        ("checkpoints", json!([])),
        ("unknown", json!({})),
    ];
    assert_eq!(
        names(&converted(&frames, TerminalKind::End)),
        ["lifecycle  completed"]
    );
}
