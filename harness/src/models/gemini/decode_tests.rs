//! Streams as Gemini sends them.

use super::*;
use crate::models::http::wire_kit::{
    Story, decoded, message, message_of_whole, stories_add_up, survives_anything,
};

fn reader() -> Reader {
    Reader::new(
        "m1",
        Arc::new(Maker::new("google_genai", "h.test", "asked")),
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
fn a_recorded_stream_adds_up_to_its_message() {
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
fn splits_cuts_and_damage_are_survived() {
    survives_anything(reader, &recorded());
}

fn tell(story: &Story) -> String {
    let mut told: Vec<Value> = vec![];
    told.extend(
        story
            .pieces(&story.thought)
            .iter()
            .map(|piece| event(&json!([{"text": piece, "thought": true}]))),
    );
    told.extend(
        story
            .pieces(&story.text)
            .iter()
            .map(|piece| event(&json!([{"text": piece}]))),
    );
    told.extend(
        story
            .calls
            .iter()
            .map(|(name, args)| event(&json!([{"functionCall": {"name": name, "args": args}}]))),
    );
    told.push(finish("STOP"));
    events(&told)
}

#[test]
fn what_is_streamed_adds_up() {
    stories_add_up(reader, tell);
}

#[test]
fn answers_that_are_not_streamed_are_one_event_or_a_list() {
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
fn blocked_prompts_and_errors_are_refusals() {
    let refused = |event: Value| match decoded(reader, &[events(&[event]).as_bytes()]).1 {
        Some(DecodeError::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    };
    let blocked = refused(
        json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 4}}),
    );
    assert_eq!(
        blocked.class(None, None),
        crate::models::ModelErrorKind::BadRequest
    );
    assert!(blocked.message.contains("PROHIBITED_CONTENT"));
    let busy = refused(
        json!({"error": {"code": 503, "message": "The model is overloaded", "status": "UNAVAILABLE"}}),
    );
    assert_eq!(
        (busy.code.as_str(), busy.status),
        ("UNAVAILABLE", Some(503))
    );
}

#[test]
fn an_answer_stopped_for_safety_is_an_answer() {
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
fn parts_that_only_the_provider_knows_are_kept_in_place() {
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
