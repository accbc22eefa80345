//! The bytes of `POST /api/threads/{thread}/runs/stream`.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::rig::{Rig, body, body_with, message_text, text};

#[tokio::test]
async fn headers_locate_run_and_disable_proxy_buffering() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    assert_eq!(
        run.headers["content-type"],
        "text/event-stream; charset=utf-8"
    );
    assert_eq!(run.headers["cache-control"], "no-cache, no-transform");
    assert_eq!(run.headers["x-accel-buffering"], "no");
    assert_eq!(
        run.headers["content-location"],
        format!("/api/threads/{}/runs/{}", run.thread, run.run)
    );
    // Clients append this path to their base URL, prefix included.
    assert_eq!(
        run.headers["location"],
        format!("/threads/{}/runs/{}/stream", run.thread, run.run)
    );
}

#[tokio::test]
async fn frame_is_event_data_id_and_blank_line() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("grüße 🦌 then say größe 🦌").await;
    let mut ids = HashSet::new();
    for frame in &run.frames {
        let (event, data) = (frame.name(), frame.data.as_deref().expect("data"));
        let id = frame
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!("id: {id}\n"));
        assert_eq!(frame.raw, format!("event: {event}\ndata: {data}\n{id}\n"));
        assert!(!data.contains('\n'));
        match &frame.id {
            Some(id) => assert!(ids.insert(id.clone()), "{id} twice"),
            None => assert_eq!(event, "end"),
        }
    }
    let metadata = run.frames[0].json().expect("json");
    assert_eq!(
        (&metadata["run_id"], &metadata["thread_id"]),
        (&json!(run.run), &json!(run.thread))
    );
    assert_eq!(run.names().first(), Some(&"metadata"));
    assert_eq!(run.names().iter().filter(|name| **name == "end").count(), 1);
    assert_eq!(
        run.frames.last().map(|frame| frame.raw.as_ref()),
        Some(b"event: end\ndata: null\n\n".as_ref())
    );
    let whole: String = run
        .frames
        .iter()
        .map(|frame| String::from_utf8_lossy(&frame.raw).into_owned())
        .collect();
    assert!(whole.contains("größe 🦌"), "text is sent as UTF-8");
}

#[tokio::test]
async fn human_message_follows_metadata_under_one_id() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    assert_eq!(run.names()[..3], ["metadata", "values", "messages"]);
    let frames: Vec<Value> = run
        .frames
        .iter()
        .map(|frame| frame.json().expect("json"))
        .collect();
    let question = &frames[2][0]["id"];
    assert!(
        question.is_string() && frames[2][0]["type"] == "human",
        "{}",
        frames[2]
    );
    for (name, state) in run
        .names()
        .iter()
        .zip(&frames)
        .filter(|(name, _)| **name == "values")
    {
        assert_eq!(&state["messages"][0]["id"], question, "{name}");
    }
}

#[tokio::test]
async fn headers_arrive_before_model_answers() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let mut stream = rig.stream(&thread, &body("[[hang]]")).await;
    let first = stream.next_frame().await.expect("frame").expect("open");
    assert_eq!(first.name(), "metadata");
    let values = stream
        .next_named("values")
        .await
        .expect("frame")
        .expect("open")
        .json()
        .expect("json");
    assert_eq!(message_text(&values["messages"][0]), "[[hang]]");
}

#[tokio::test]
async fn chunks_concatenate_to_final_message() {
    let rig = Rig::start().await;
    let run = rig
        .run_prompt("[[think a deep thought]][[usage 11,7]] then say one two three four")
        .await;
    let chunks = run.chunks();
    let last = run.last_values()["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("an answer");
    assert!(chunks.len() >= 4, "{chunks:#?}");
    assert!(
        chunks.iter().all(|chunk| chunk["id"] == last["id"]),
        "one id"
    );
    assert_eq!(
        chunks.iter().map(message_text).collect::<String>(),
        "one two three four"
    );
    assert_eq!(message_text(&last), "one two three four");
    let thoughts: String = chunks
        .iter()
        .filter_map(|chunk| chunk["additional_kwargs"]["reasoning_content"].as_str())
        .collect();
    assert_eq!(thoughts, "a deep thought");
    assert_eq!(
        last["additional_kwargs"]["reasoning_content"],
        "a deep thought"
    );
    let usage: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["usage_metadata"])
        .filter(|usage| usage.is_object())
        .collect();
    assert_eq!(usage.len(), 1);
    assert_eq!(
        (
            &usage[0]["input_tokens"],
            &usage[0]["output_tokens"],
            &usage[0]["total_tokens"]
        ),
        (&json!(11), &json!(7), &json!(18))
    );
    assert_eq!(last["usage_metadata"]["total_tokens"], 18);
    assert_eq!(
        chunks.last().map(|chunk| chunk["chunk_position"].clone()),
        Some(json!("last"))
    );
    assert_eq!(
        chunks
            .iter()
            .filter(|chunk| chunk["chunk_position"] == "last")
            .count(),
        1
    );
}

#[tokio::test]
async fn chunks_carry_fields_and_node_that_clients_read() {
    let rig = Rig::start().await;
    let run = rig.run_prompt("then say x").await;
    let pairs = run.data("messages");
    let chunk = pairs
        .iter()
        .find(|pair| pair[0]["type"] == "AIMessageChunk")
        .expect("a chunk");
    // As recorded from DeerFlow.
    for field in [
        "content",
        "additional_kwargs",
        "response_metadata",
        "type",
        "name",
        "id",
        "tool_calls",
        "invalid_tool_calls",
        "usage_metadata",
        "tool_call_chunks",
        "chunk_position",
    ] {
        assert!(chunk[0].get(field).is_some(), "{field}: {chunk}");
    }
    assert_eq!(chunk[1]["langgraph_node"], "model");
    assert_eq!(chunk[1]["thread_id"], *run.thread);
    assert!(
        text(&chunk[1]["langgraph_checkpoint_ns"]).starts_with("model:"),
        "{chunk}"
    );
}

#[tokio::test]
async fn only_requested_modes_are_streamed() {
    let rig = Rig::start().await;
    for (modes, allowed) in [
        (json!("values"), vec!["values"]),
        (json!(["updates"]), vec!["updates"]),
        (json!(["messages-tuple"]), vec!["messages"]),
        (json!(["custom"]), vec![]),
        (Value::Null, vec!["values"]),
        (json!([]), vec!["values"]),
    ] {
        let thread = rig.thread().await;
        let run = rig
            .run(
                &thread,
                &body_with("then say x", json!({"stream_mode": modes})),
            )
            .await;
        let names = run.names();
        assert_eq!(
            (names[0], names[names.len() - 1]),
            ("metadata", "end"),
            "{modes}"
        );
        for name in &names[1..names.len() - 1] {
            assert!(allowed.contains(name), "{modes}: {names:?}");
        }
        assert!(
            allowed.iter().all(|name| names.contains(name)),
            "{modes}: {names:?}"
        );
    }
}

#[tokio::test]
async fn idle_stream_sends_heartbeat() {
    let rig = Rig::with("runs: {idle_limit_seconds: 120}").await;
    let thread = rig.post("/threads", &json!({})).await.ok();
    let path = format!("/threads/{}/runs/stream", text(&thread["thread_id"]));
    let body = json!({"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "[[delay 9000]] then say x"}]}});
    let request = rig.request(reqwest::Method::POST, &path).json(&body);
    let mut stream = crate::rig::events(request.send().await.expect("answer")).await;
    let mut heartbeat = false;
    while let Some(frame) = stream.next_frame().await.expect("frame") {
        heartbeat |= frame.is_comment() && frame.comments == ["heartbeat"];
    }
    assert!(heartbeat);
}
