//! Decoding of Anthropic streams.

use serde_json::json;

use super::*;
use crate::http::wire_kit::{
    GeneratedAnswer, check_robustness, check_round_trip, decoded, invalid_calls, message,
    message_of_whole,
};

fn reader() -> MessagesReader {
    MessagesReader::new(
        "m1",
        Arc::new(ModelOrigin::new("anthropic", "h.test", "asked")),
    )
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().unwrap()
            )
        })
        .collect()
}

fn begin(index: usize, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: usize, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn end(index: usize) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg", "model": "claude-x", "role": "assistant", "content": [], "stop_reason": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 30, "output_tokens": 1}}})
}

fn stop(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn recorded() -> String {
    let [reason, over] = stop("tool_use");
    events(&[
        start(),
        json!({"type": "ping"}),
        begin(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(0, json!({"type": "thinking_delta", "thinking": "Höm"})),
        delta(0, json!({"type": "thinking_delta", "thinking": ", 世界"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        end(0),
        begin(1, json!({"type": "redacted_thinking", "data": "enc"})),
        end(1),
        begin(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Grüße "})),
        delta(2, json!({"type": "text_delta", "text": "🦌"})),
        end(2),
        begin(
            3,
            json!({"type": "tool_use", "id": "a", "name": "ls", "input": {}}),
        ),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "{\"pa"}),
        ),
        begin(
            4,
            json!({"type": "tool_use", "id": "b", "name": "sh", "input": {}}),
        ),
        delta(
            4,
            json!({"type": "input_json_delta", "partial_json": "{oops"}),
        ),
        delta(
            3,
            json!({"type": "input_json_delta", "partial_json": "th\": 1}"}),
        ),
        end(3),
        end(4),
        reason,
        over,
    ])
}

#[test]
fn recorded_stream_decodes_to_its_message() {
    let message = message(reader, &recorded());
    assert_eq!(message.content.text(), "Grüße 🦌");
    assert_eq!(message.additional_kwargs["reasoning_content"], "Höm, 世界");
    assert_eq!(
        json!(message.tool_calls()),
        json!([{"name": "ls", "args": {"path": 1}, "id": "a", "type": "tool_call"}])
    );
    assert_eq!(invalid_calls(&message), 1);
    assert_eq!(
        json!(message.usage()),
        json!({"input_tokens": 42, "output_tokens": 7, "total_tokens": 49,
            "input_token_details": {"cache_read": 30, "cache_creation": 2}, "output_token_details": {}})
    );
    assert_eq!(
        json!(message.response_metadata),
        json!({"stop_reason": "tool_use", "model_name": "claude-x", "model_provider": "anthropic"})
    );
    assert_eq!(
        message.additional_kwargs["provider_parts"],
        json!({"provider": "anthropic", "server": "h.test", "model": "asked", "parts": [
            {"type": "thought", "bytes": 12, "extras": {"signature": "c2ln"}},
            {"type": "own", "value": {"type": "redacted_thinking", "data": "enc"}},
            {"type": "text", "bytes": 12},
            {"type": "call", "id": "a"},
            {"type": "call", "id": "b"},
        ]})
    );
}

#[test]
fn decoder_survives_splits_truncation_and_damage() {
    check_robustness(reader, &recorded());
}

#[test]
fn unsigned_or_incomplete_thought_has_no_signature() {
    let [reason, over] = stop("end_turn");
    let stream = events(&[
        start(),
        begin(
            0,
            json!({"type": "thinking", "thinking": "h", "signature": ""}),
        ),
        end(0),
        begin(1, json!({"type": "text", "text": "so"})),
        end(1),
        begin(
            2,
            json!({"type": "thinking", "thinking": "m", "signature": "half"}),
        ),
        reason,
        over,
    ]);
    assert_eq!(
        message(reader, &stream).additional_kwargs["provider_parts"]["parts"],
        json!([{"type": "thought", "bytes": 1}, {"type": "text", "bytes": 2}, {"type": "thought", "bytes": 1}])
    );
}

fn encode(generated: &GeneratedAnswer) -> String {
    let mut log = vec![start()];
    let mut index = 0;
    let mut block = |kind: Value, pieces: Vec<Value>| {
        log.push(begin(index, kind));
        log.extend(pieces.into_iter().map(|piece| delta(index, piece)));
        log.push(end(index));
        index += 1;
    };
    let pieces = |text: &str, kind: &str, key: &str| {
        generated
            .pieces(text)
            .iter()
            .map(|piece| json!({"type": kind, key: piece}))
            .collect()
    };
    if !generated.thought.is_empty() {
        block(
            json!({"type": "thinking", "thinking": ""}),
            pieces(&generated.thought, "thinking_delta", "thinking"),
        );
    }
    block(
        json!({"type": "text", "text": ""}),
        pieces(&generated.text, "text_delta", "text"),
    );
    for (at, (name, args)) in generated.calls.iter().enumerate() {
        let call = json!({"type": "tool_use", "id": format!("c{at}"), "name": name, "input": {}});
        block(
            call,
            pieces(&args.to_string(), "input_json_delta", "partial_json"),
        );
    }
    log.extend(stop("end_turn"));
    events(&log)
}

#[test]
fn encoded_answers_decode_to_themselves() {
    check_round_trip(reader, encode);
}

#[test]
fn whole_message_decodes_like_a_stream() {
    let body = json!({"type": "message", "model": "claude-x", "stop_reason": "max_tokens", "usage": {"input_tokens": 1, "output_tokens": 2},
        "content": [{"type": "thinking", "thinking": "h", "signature": "s"}, {"type": "thinking", "thinking": "m", "signature": "t"},
            {"type": "text", "text": "so"},
            {"type": "tool_use", "id": "", "name": "ls", "input": {"x": 1}}]});
    let message = message_of_whole(reader, &body);
    assert_eq!(
        (
            message.content.text().as_str(),
            &message.additional_kwargs["reasoning_content"]
        ),
        ("so", &json!("hm"))
    );
    assert_eq!(
        json!(message.tool_calls()),
        json!([{"name": "ls", "args": {"x": 1}, "id": "call_m1_0", "type": "tool_call"}])
    );
    assert_eq!(message.response_metadata["stop_reason"], "max_tokens");
}

#[test]
fn errors_and_provider_specific_blocks_are_decoded() {
    let busy = events(&[
        start(),
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ]);
    let provider_error = ProviderError {
        code: "overloaded_error".to_owned(),
        message: "Overloaded".to_owned(),
        ..ProviderError::default()
    };
    assert_eq!(
        decoded(reader, &[busy.as_bytes()]).1,
        Some(DecodeError::ProviderError(provider_error))
    );
    let [reason, over] = stop("end_turn");
    let search = events(&[
        start(),
        begin(
            0,
            json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        ),
        delta(
            0,
            json!({"type": "input_json_delta", "partial_json": "{\"q\":1}"}),
        ),
        end(0),
        reason,
        over,
    ]);
    let message = message(reader, &search);
    assert_eq!(
        message.additional_kwargs["provider_parts"]["parts"][0]["value"],
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}})
    );
}
