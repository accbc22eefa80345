//! Transport of sessions and turns over HTTP.

use deerflow_flow::adapter::{
    AdapterFactory, InvocationId, SESSION_NOT_FOUND, SessionId, TurnEffect, TurnMode,
};
use deerflow_flow::adapters::pi_mono::PiMonoOptions;
use serde_json::{Value, json};

use super::kit::{CANARY, open, turn, turn_with};
use crate::http_server::{HttpServer, Reply};
use crate::pi_mono_kit::{adapter_context, agent, factory};

#[tokio::test]
async fn answers_that_are_no_object_are_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in ["", "  ", "oops", "[]", "\"text\"", "null", "{\"a\":", &deep] {
        let turn = turn("http", Reply::text(200, body)).await;
        turn.assert_failed("PI_MONO_BAD_RESPONSE", false);
    }
    let large = Reply::Repeat(vec![], vec![b' '; 1 << 20], 100);
    turn("http", large)
        .await
        .assert_failed("PI_MONO_BAD_RESPONSE", false);
}

#[tokio::test]
async fn fields_of_wrong_type_count_as_absent() {
    let body = json!({
        "finalText": 5, "structuredOutput": [1], "usage": "many", "toolCalls": {}, "warnings": "w",
        "status": null, "error": {"code": "ignored"},
    });
    let turn = turn("http", Reply::json(200, &body)).await;
    let usage = json!({"inputTokens": 0, "outputTokens": 0, "totalTokens": 0});
    let expected = json!({"status": "completed", "finalText": "", "usage": usage});
    assert_eq!(turn.json, expected);
}

#[tokio::test]
async fn statuses_pass_with_an_error() {
    for status in ["failed", "timed_out", "blocked", "interrupted"] {
        let turn = turn("http", Reply::json(200, &json!({"status": status}))).await;
        assert_eq!(turn.json["status"], status);
        turn.assert_failed("PI_MONO_REQUEST_FAILED", false);
    }
    let unknown = turn("http", Reply::json(200, &json!({"status": "sleeping"}))).await;
    assert_eq!(unknown.json["status"], "failed");
    unknown.assert_failed("PI_MONO_REQUEST_FAILED", false);
}

#[tokio::test]
async fn error_of_the_server_passes_without_secrets() {
    let error = json!({
        "code": "TOOL_BROKE", "message": format!("bad {CANARY}"), "category": "tool", "retryable": true,
        "details": {"tool": CANARY, "apiKey": "x", "requestHeaders": {"a": "b"}, "exit": 3},
    });
    let turn = turn(
        "http",
        Reply::json(200, &json!({"status": "failed", "error": error})),
    )
    .await;
    turn.assert_failed("TOOL_BROKE", true);
    let found = &turn.json["error"];
    assert_eq!(
        (&found["message"], &found["category"]),
        (&json!("bad [redacted]"), &json!("tool"))
    );
    assert_eq!(found["details"], json!({"tool": "[redacted]", "exit": 3}));
}

#[tokio::test]
async fn event_stream_gives_deltas_and_result() {
    let pieces = [
        ": keep-alive\n\nevent: delta\ndata: {\"deltaText\":\"Hel\"}\n\nevent: del",
        "ta\ndata: {\"deltaText\":\"lo\"}\n\nevent: other\ndata: {\"deltaText\":\"no\"}\n\n",
        "event: result\ndata: {\"usage\":{\"totalTokens\":4},\"warnings\":[\"slow\"]}",
    ];
    let turn = turn("pi-mono", Reply::sse(pieces)).await;
    assert_eq!(
        (turn.streamed.as_str(), &turn.json["finalText"]),
        ("Hello", &json!("Hello"))
    );
    assert_eq!(turn.json["usage"]["totalTokens"], 4);
    assert_eq!(turn.json["warnings"], json!(["slow"]));
}

#[tokio::test]
async fn event_stream_without_result_has_a_warning() {
    let text = turn(
        "http",
        Reply::sse(["event: delta\ndata: {\"text\":\"a\"}\n\n"]),
    )
    .await;
    assert_eq!(text.json["warnings"], json!(["stream_unterminated"]));
    let empty = turn("http", Reply::sse(["data: {}\n\n"])).await;
    empty.assert_failed("PI_MONO_BAD_RESPONSE", false);
}

#[tokio::test]
async fn evaluation_without_structured_output_is_searched() {
    let body = json!({"finalText": "so {\"score\": 0.5}"});
    let answer = move |_: &_, _| Reply::json(200, &body);
    let turn = turn_with("http", TurnMode::Evaluate, answer, |_| ()).await;
    assert_eq!(turn.json["structuredOutput"], json!({"score": 0.5}));
}

#[tokio::test]
async fn unknown_session_has_its_own_code() {
    let turn = turn("http", Reply::text(404, "no session")).await;
    turn.assert_failed(SESSION_NOT_FOUND, false);
    assert_eq!(turn.json["error"]["details"]["httpStatus"], 404);
    let paths = turn.server.requests();
    assert_eq!(paths.len(), 1);
}

#[tokio::test]
async fn ids_are_encoded_in_paths_and_gone_sessions_are_disposed() {
    let server = HttpServer::start(|_, _| Reply::text(404, "")).await;
    let options = PiMonoOptions {
        base_url: Some(format!("http://server.test:{}", server.port)),
        ..PiMonoOptions::default()
    };
    let agent = agent(json!({}));
    let factory = factory(options);
    let adapter = factory.create(adapter_context(&agent)).await.unwrap();
    adapter
        .dispose(&SessionId("a/../b?c".to_owned()))
        .await
        .unwrap();
    let aborted = adapter.abort(&InvocationId("ü 1".to_owned())).await;
    assert_eq!(aborted.unwrap_err().details["httpStatus"], 404);
    let requests = server.requests();
    let paths: Vec<_> = requests
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(
        paths,
        ["/sessions/a%2F..%2Fb%3Fc", "/turns/%C3%BC%201/abort"]
    );
}

#[tokio::test]
async fn turn_sends_configuration_without_engine_notes() {
    let change = |turn: &mut deerflow_flow::adapter::AgentInvocation| {
        "SYS".clone_into(&mut turn.system_prompt);
    };
    let answer = |_: &_, _| Reply::json(200, &json!({"finalText": "x"}));
    let turn = turn_with("http", TurnMode::Normal, answer, change).await;
    let body: Value = serde_json::from_str(&turn.server.requests()[0].body).unwrap();
    assert_eq!(
        (&body["prompt"], &body["systemPrompt"]),
        (&json!("SYS\n\nU"), &json!("SYS"))
    );
    assert_eq!(body["input"], json!({"userPrompt": "U"}));
    assert_eq!(body["adapterConfig"]["note"], "sent");
    assert_eq!(body["adapterConfig"].get("apiKey"), None);
}

#[tokio::test]
async fn session_answers_without_usable_id_are_refused() {
    for body in [
        json!({}),
        json!({"sessionId": ""}),
        json!({"sessionId": ".."}),
        json!([1]),
    ] {
        let server = HttpServer::start(move |_, _| Reply::json(200, &body)).await;
        let options = PiMonoOptions {
            base_url: Some(format!("http://server.test:{}", server.port)),
            ..PiMonoOptions::default()
        };
        let opened = open(options, json!({}), "pi-mono").await;
        assert_eq!(opened, Err("PI_MONO_BAD_RESPONSE ".to_owned()));
    }
}

#[tokio::test]
async fn configuration_states_effect_of_repeated_turns() {
    let table = [
        (json!({"baseUrl": "http://h"}), TurnEffect::Unsafe, true),
        (
            json!({"baseUrl": "http://h", "effect": "keyed"}),
            TurnEffect::Keyed,
            true,
        ),
        (
            json!({"baseUrl": "http://h", "effect": "pure"}),
            TurnEffect::Pure,
            true,
        ),
        (
            json!({"baseUrl": "http://h", "transport": "deepseek", "apiKey": "k", "model": "m"}),
            TurnEffect::Pure,
            false,
        ),
    ];
    for (config, effect, stores_history) in table {
        let agent = agent(config);
        let factory = factory(PiMonoOptions::default());
        let adapter = factory.create(adapter_context(&agent)).await.unwrap();
        assert_eq!(
            (adapter.effect(), adapter.stores_history()),
            (effect, stores_history)
        );
    }
}
