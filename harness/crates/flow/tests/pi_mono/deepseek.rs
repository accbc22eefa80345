//! DeepSeek-compatible transport.

use deerflow_flow::adapter::{TurnMessage, TurnMode, TurnRole};
use serde_json::{Value, json};

use super::kit::{CANARY, turn, turn_with};
use crate::http_server::{Reply, event_stream};

const REQUEST_FAILED: &str = "PI_MONO_DEEPSEEK_REQUEST_FAILED";

fn chunk(text: &str) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"delta": {"content": text}}]})
    )
}

fn last(text: &str) -> String {
    let choice = json!({"delta": {"content": text}, "finish_reason": "stop"});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

fn stream(texts: &[String]) -> Reply {
    Reply::sse(texts.iter().map(String::as_str))
}

#[tokio::test]
async fn stream_split_at_every_byte_is_read() {
    let text = format!(
        "\u{feff}: keep-alive\r\n\r\nevent: x\r\n{}data: not json\n\n{}data: [DONE]\n\n{}",
        chunk("Grüße "),
        last("世界"),
        chunk("late"),
    );
    let pieces = text.bytes().map(|byte| vec![byte]).collect();
    let turn = turn("deepseek", Reply::Whole(200, vec![event_stream()], pieces)).await;
    assert_eq!(turn.json["finalText"], "Grüße 世界");
    assert_eq!(turn.streamed, "Grüße 世界");
    assert_eq!(turn.json.get("warnings"), None);
}

#[tokio::test]
async fn retry_after_is_reported_up_to_one_minute() {
    for (header, millis) in [
        ("7", json!(7_000)),
        ("3600", json!(60_000)),
        ("soon", Value::Null),
    ] {
        let headers = vec![format!("retry-after: {header}")];
        let turn = turn("deepseek", Reply::Whole(429, headers, vec![])).await;
        turn.assert_failed(REQUEST_FAILED, true);
        let details = &turn.json["error"]["details"];
        assert_eq!(
            (&details["httpStatus"], &details["retryAfterMs"]),
            (&json!(429), &millis)
        );
    }
}

#[tokio::test]
async fn status_decides_whether_request_is_repeated() {
    for status in [302, 400, 401, 402, 403, 404, 422] {
        let turn = turn("deepseek", Reply::text(status, "no")).await;
        turn.assert_failed(REQUEST_FAILED, false);
    }
    for status in [408, 409, 425, 500, 503] {
        let turn = turn("deepseek", Reply::text(status, "busy")).await;
        turn.assert_failed(REQUEST_FAILED, true);
    }
}

#[tokio::test]
async fn error_text_is_cut_and_without_key() {
    let body = json!({"error": {"message": format!("{CANARY} {}", "x".repeat(9_000))}});
    let turn = turn("deepseek", Reply::json(401, &body)).await;
    turn.assert_failed(REQUEST_FAILED, false);
    let message = turn.json["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("HTTP status 401: [redacted] xxx"),
        "{message}"
    );
}

#[tokio::test]
async fn error_inside_stream_fails_the_turn() {
    let error = json!({"error": {"message": format!("key {CANARY} is busy"), "code": 503}});
    let pieces = [chunk("a"), format!("data: {error}\n\n"), last("b")];
    let turn = turn("deepseek", stream(&pieces)).await;
    turn.assert_failed(REQUEST_FAILED, true);
    assert_eq!(turn.json["error"]["message"], "key [redacted] is busy");
    assert_eq!(turn.streamed, "a");
}

#[tokio::test]
async fn broken_stream_fails_unless_answer_was_complete() {
    let cut = |text: String| Reply::Cut(vec![event_stream()], vec![text.into_bytes()]);
    let broken = turn("deepseek", cut(chunk("a"))).await;
    broken.assert_failed("PI_MONO_REQUEST_FAILED", true);
    let complete = turn("deepseek", cut(last("a"))).await;
    assert_eq!(complete.json["finalText"], "a");
    let unterminated = turn("deepseek", stream(&[chunk("a")])).await;
    assert_eq!(
        unterminated.json["warnings"],
        json!(["stream_unterminated"])
    );
}

#[tokio::test]
async fn answer_without_text_is_an_error() {
    let pieces: [&[String]; 3] = [&[], &[last(" \n")], &["data: [DONE]\n\n".to_owned()]];
    for pieces in pieces {
        let turn = turn("deepseek", stream(pieces)).await;
        turn.assert_failed("PI_MONO_DEEPSEEK_EMPTY_RESPONSE", false);
    }
    let html = turn("deepseek", Reply::text(200, "<html>{\"a\":1}</html>")).await;
    html.assert_failed("PI_MONO_DEEPSEEK_EMPTY_RESPONSE", false);
}

#[tokio::test]
async fn answer_that_is_not_streamed_is_read() {
    let choice = json!({"message": {"content": "whole"}, "finish_reason": "stop"});
    let body = json!({"choices": [choice], "usage": {"prompt_tokens": 2, "completion_tokens": 1}});
    let turn = turn("deepseek", Reply::json(200, &body)).await;
    assert_eq!(turn.json["finalText"], "whole");
    assert_eq!(turn.json["usage"]["totalTokens"], 3);
}

#[tokio::test]
async fn oversized_answers_are_refused() {
    let piece = vec![b'x'; 1 << 20];
    let endless_line = Reply::Repeat(vec![event_stream()], piece.clone(), 100);
    let json = vec!["content-type: application/json".to_owned()];
    let large_body = Reply::Repeat(json, piece, 100);
    let long_text = stream(&vec![chunk(&"x".repeat(1 << 20)); 9]);
    let calls = json!({"choices": [{"delta": {"tool_calls": vec![json!({}); 1_000]}}]});
    let many_calls = Reply::Repeat(
        vec![event_stream()],
        format!("data: {calls}\n\n").into_bytes(),
        1_000,
    );
    for reply in [endless_line, large_body, long_text, many_calls] {
        let turn = turn("deepseek", reply).await;
        turn.assert_failed("PI_MONO_BAD_RESPONSE", false);
    }
}

#[tokio::test]
async fn silent_server_ends_the_turn_as_timed_out() {
    let stalled = Reply::Stall(vec![event_stream()], vec![chunk("a").into_bytes()]);
    for reply in [Reply::Hang, stalled] {
        let turn = turn("deepseek", reply).await;
        turn.assert_failed("PI_MONO_TIMEOUT", true);
        assert_eq!(turn.json["status"], "timed_out");
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let location = "location: http://other.test/chat/completions".to_owned();
    let turn = turn("deepseek", Reply::Whole(307, vec![location], vec![])).await;
    turn.assert_failed(REQUEST_FAILED, false);
    assert_eq!(turn.server.requests().len(), 1);
}

#[tokio::test]
async fn history_precedes_prompt_and_is_not_doubled() {
    let message = |role, content: &str| TurnMessage {
        role,
        content: content.to_owned(),
    };
    let earlier = [
        message(TurnRole::User, "a"),
        message(TurnRole::Assistant, "b"),
    ];
    for repeated in [false, true] {
        let mut messages = earlier.to_vec();
        messages.extend(repeated.then(|| message(TurnRole::User, "U")));
        let answer = |_: &_, _| stream(&[last("x")]);
        let change = |turn: &mut deerflow_flow::adapter::AgentInvocation| {
            turn.messages = messages.into();
            turn.max_tokens = Some(9);
        };
        let turn = turn_with("openai-compatible", TurnMode::Plan, answer, change).await;
        let body: Value = serde_json::from_str(&turn.server.requests()[0].body).unwrap();
        let texts: Vec<_> = body["messages"].as_array().unwrap().iter().collect();
        let contents: Vec<_> = texts.iter().map(|message| &message["content"]).collect();
        assert_eq!(contents, ["a", "b", "U"]);
        assert_eq!(body["max_tokens"], 9);
    }
}
