//! Tests of converting frames to events.

use serde_json::json;

use super::*;

fn kinds(events: &[StreamEvent]) -> Vec<(EventKind, &str)> {
    events
        .iter()
        .map(|event| (event.kind, event.data["type"].as_str().unwrap_or_default()))
        .collect()
}

fn chunk(id: &str, text: &str) -> Value {
    json!([{ "type": "AIMessageChunk", "id": id, "content": text, "additional_kwargs": {} }, {}])
}

#[test]
fn state_does_not_repeat_streamed_text() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame(
        "values",
        json!({ "messages": [{ "type": "human", "id": "h", "content": "?" }] }),
    );
    assert_eq!(
        adapter.on_frame("messages", chunk("a", "one "))[0].text(),
        Some(("a", "one "))
    );
    assert_eq!(
        adapter.on_frame("messages", chunk("a", "two"))[0].text(),
        Some(("a", "two"))
    );
    let answer = json!({ "type": "ai", "id": "a", "content": "one two", "tool_calls": [] });
    let events = adapter.on_frame(
        "values",
        json!({ "messages": [{ "type": "human", "id": "h" }, answer], "title": "T" }),
    );
    assert_eq!(kinds(&events), [(EventKind::Values, "")]);
    assert_eq!(events[0].data["title"], "T");
}

#[test]
fn text_appended_by_a_guard_is_emitted() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame("values", json!({ "messages": [] }));
    adapter.on_frame("messages", chunk("a", "one "));
    let state = |text: &str| json!({ "messages": [{ "type": "ai", "id": "a", "content": text, "tool_calls": [] }] });
    assert_eq!(
        kinds(&adapter.on_frame("values", state("one "))),
        [(EventKind::Values, "")]
    );
    assert_eq!(
        adapter.on_frame("values", state("one\n\nstopped"))[0].text(),
        Some(("a", "\n\nstopped"))
    );
    assert_eq!(
        kinds(&adapter.on_frame("values", state("one\n\nstopped"))),
        [(EventKind::Values, "")]
    );
    assert_eq!(
        kinds(&adapter.on_frame("values", state("something else"))),
        [(EventKind::Values, "")],
        "emitted text cannot be withdrawn"
    );
}

#[test]
fn extras_are_emitted_once() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame("values", json!({ "messages": [] }));
    for piece in ["think", "ing"] {
        let chunk = json!([{ "type": "AIMessageChunk", "id": "a", "content": "", "additional_kwargs": { "reasoning_content": piece } }, {}]);
        assert_eq!(
            adapter.on_frame("messages", chunk)[0].data["additional_kwargs"],
            json!({ "reasoning_content": piece })
        );
    }
    let state = |extras: Value| json!({ "messages": [{ "type": "ai", "id": "a", "content": "", "additional_kwargs": extras }] });
    let emitted = adapter.on_frame(
        "values",
        state(json!({ "reasoning_content": "thinking", "stop_reason": "loop_capped" })),
    );
    assert_eq!(
        emitted[0].data,
        json!({ "type": "ai", "content": "", "id": "a", "additional_kwargs": { "stop_reason": "loop_capped" } })
    );
    let again = adapter.on_frame(
        "values",
        state(json!({ "reasoning_content": "thinking", "stop_reason": "loop_capped" })),
    );
    assert_eq!(kinds(&again), [(EventKind::Values, "")]);
    assert_eq!(again[0].data["artifacts"], json!([]));
}

#[test]
fn calls_and_results_are_emitted_once_from_any_frame() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame("values", json!({ "messages": [] }));
    let call = json!({ "type": "ai", "id": "a", "content": "", "tool_calls": [{ "name": "ls", "args": { "path": "/" }, "id": "c", "type": "tool_call" }] });
    let result = json!({ "type": "tool", "id": "t", "content": [{ "type": "text", "text": "x" }], "name": "ls", "tool_call_id": "c", "status": "success" });
    let events = adapter.on_frame("values", json!({ "messages": [call] }));
    assert_eq!(
        events[0].data,
        json!({ "type": "ai", "content": "", "id": "a", "tool_calls": [{ "name": "ls", "args": { "path": "/" }, "id": "c" }] })
    );
    let emitted = adapter.on_frame("messages", json!([result, {}]));
    assert_eq!(
        emitted[0].data,
        json!({ "type": "tool", "content": "x", "name": "ls", "tool_call_id": "c", "id": "t", "status": "success" })
    );
    assert_eq!(
        kinds(&adapter.on_frame("values", json!({ "messages": [call, result] }))),
        [(EventKind::Values, "")]
    );
}

#[test]
fn state_emits_an_answer_that_was_not_streamed() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame("values", json!({ "messages": [] }));
    let events = adapter.on_frame(
        "values",
        json!({ "messages": [{ "type": "ai", "id": "a", "content": "whole" }] }),
    );
    assert_eq!(events[0].text(), Some(("a", "whole")));
}

#[test]
fn earlier_turns_are_neither_emitted_nor_counted() {
    let mut adapter = EventAdapter::default();
    let usage = json!({ "input_tokens": 7, "output_tokens": 1, "total_tokens": 8 });
    let before = json!({ "type": "ai", "id": "old", "content": "old", "tool_calls": [{ "name": "ls", "args": {}, "id": "c" }], "usage_metadata": usage });
    assert_eq!(
        kinds(&adapter.on_frame("values", json!({ "messages": [before] }))),
        [(EventKind::Values, "")]
    );
    assert_eq!(
        kinds(&adapter.on_frame("values", json!({ "messages": [before] }))),
        [(EventKind::Values, "")]
    );
    assert_eq!(
        adapter.end(RunStatus::Success).data["usage"]["total_tokens"],
        0
    );
}

#[test]
fn tokens_are_counted_once_per_message() {
    let mut adapter = EventAdapter::default();
    adapter.on_frame("values", json!({ "messages": [] }));
    let usage = json!({ "input_tokens": 5, "output_tokens": 2, "total_tokens": 7 });
    adapter.on_frame("messages", json!([{ "type": "AIMessageChunk", "id": "a", "content": "", "usage_metadata": usage }, {}]));
    adapter.on_frame(
        "values",
        json!({ "messages": [
        { "type": "ai", "id": "a", "content": "", "usage_metadata": usage },
        { "type": "ai", "id": "b", "content": "x", "usage_metadata": { "input_tokens": 1, "output_tokens": 1 } },
    ] }),
    );
    assert_eq!(
        adapter.end(RunStatus::Success).data["usage"],
        json!({ "input_tokens": 6, "output_tokens": 3, "total_tokens": 9 })
    );
}

#[test]
fn malformed_frames_are_ignored() {
    let mut adapter = EventAdapter::default();
    for data in [
        Value::Null,
        json!([]),
        json!({}),
        json!([{}]),
        json!([{ "type": 1 }]),
        json!("x"),
    ] {
        assert!(
            adapter.on_frame("messages", data.clone()).is_empty(),
            "{data}"
        );
        assert!(adapter.on_frame("metadata", data).is_empty());
    }
}
