//! Decoding of Gemini streams.

use super::*;
use crate::http::wire_kit::{
    GeneratedAnswer, check_robustness, check_round_trip, decoded, message, message_of_whole,
};

fn reader() -> GenerateContentReader {
    GenerateContentReader::new(
        "m1",
        Arc::new(ModelOrigin::new("google_genai", "h.test", "asked")),
    )
}

fn event(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "gemini-x"})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason, "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 6,
            "totalTokenCount": 17}})
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\r\n\r\n"))
        .collect()
}

fn recorded() -> String {
    events(&[
        event(&json!([{"text": "Höm", "thought": true}])),
        event(&json!([{"text": "Grüße "}])),
        event(&json!([{"text": "世界 🦌"}])),
        event(&json!([
            {"functionCall": {"name": "ls", "args": {"path": "/ü"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "ls", "args": {}, "id": "own"}},
        ])),
        event(&json!([{"text": "", "thoughtSignature": "ZW5k"}])),
        finish("STOP"),
    ])
}

#[test]
fn recorded_stream_decodes_to_its_message() {
    let message = message(reader, &recorded());
    assert_eq!(message.content.text(), "Grüße 世界 🦌");
    assert_eq!(message.additional_kwargs["reasoning_content"], "Höm");
    assert_eq!(
        json!(message.tool_calls()),
        json!([{"name": "ls", "args": {"path": "/ü"}, "id": "call_m1_0", "type": "tool_call"},
            {"name": "ls", "args": {}, "id": "own", "type": "tool_call"}])
    );
    assert_eq!(
        json!(message.usage()),
        json!({"input_tokens": 10, "output_tokens": 7, "total_tokens": 17,
            "input_token_details": {"cache_read": 6}, "output_token_details": {"reasoning": 3}})
    );
    assert_eq!(
        json!(message.response_metadata),
        json!({"finish_reason": "STOP", "model_name": "gemini-x", "model_provider": "google_genai"})
    );
    assert_eq!(
        message.additional_kwargs["provider_parts"]["parts"],
        json!([
            {"type": "text", "bytes": 19},
            {"type": "call", "id": "call_m1_0", "extras": {"thoughtSignature": "c2ln"}},
            {"type": "call", "id": "own"},
            {"type": "text", "bytes": 0, "extras": {"thoughtSignature": "ZW5k"}},
        ])
    );
}

#[test]
fn decoder_survives_splits_truncation_and_damage() {
    check_robustness(reader, &recorded());
}

fn encode(generated: &GeneratedAnswer) -> String {
    let mut log: Vec<Value> = vec![];
    log.extend(
        generated
            .pieces(&generated.thought)
            .iter()
            .map(|piece| event(&json!([{"text": piece, "thought": true}]))),
    );
    log.extend(
        generated
            .pieces(&generated.text)
            .iter()
            .map(|piece| event(&json!([{"text": piece}]))),
    );
    log.extend(
        generated
            .calls
            .iter()
            .map(|(name, args)| event(&json!([{"functionCall": {"name": name, "args": args}}]))),
    );
    log.push(finish("STOP"));
    events(&log)
}

#[test]
fn encoded_answers_decode_to_themselves() {
    check_round_trip(reader, encode);
}

#[test]
fn unstreamed_answers_are_one_event_or_a_list() {
    let list = json!([
        event(&json!([{"text": "a"}])),
        event(&json!([{"text": "b"}])),
        finish("MAX_TOKENS")
    ]);
    let message = message_of_whole(reader, &list);
    assert_eq!(
        (
            message.content.text().as_str(),
            &message.response_metadata["finish_reason"]
        ),
        ("ab", &json!("MAX_TOKENS"))
    );
    assert_eq!(
        message_of_whole(reader, &event(&json!([{"text": "one"}])))
            .content
            .text(),
        "one"
    );
}

#[test]
fn blocked_prompts_and_errors_are_provider_errors() {
    let provider_error = |event: Value| match decoded(reader, &[events(&[event]).as_bytes()]).1 {
        Some(DecodeError::ProviderError(provider_error)) => provider_error,
        other => panic!("{other:?}"),
    };
    let blocked = provider_error(
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}),
    );
    assert_eq!(blocked.kind(None, None), crate::ModelErrorKind::BadRequest);
    assert!(blocked.message.contains("PROHIBITED_CONTENT"));
    let busy = provider_error(
        json!({"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}}),
    );
    assert_eq!(
        (busy.code.as_str(), busy.status),
        ("UNAVAILABLE", Some(503))
    );
}

#[test]
fn answer_stopped_for_safety_is_complete() {
    let message = message(reader, &events(&[finish("SAFETY")]));
    assert_eq!(
        (
            message.content.text().as_str(),
            &message.response_metadata["finish_reason"]
        ),
        ("", &json!("SAFETY"))
    );
}

#[test]
fn provider_specific_parts_keep_their_position() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let message = message(
        reader,
        &events(&[event(&json!([{"text": "see"}, code])), finish("STOP")]),
    );
    assert_eq!(
        message.additional_kwargs["provider_parts"]["parts"],
        json!([{"type": "text", "bytes": 3}, {"type": "own", "value": code}])
    );
}
