//! The request part by part, and the adapter against a local server.

#[path = "wire_stream_tests.rs"]
mod stream;

use super::*;
use crate::ModelErrorKind;
use crate::http::test_server::{TestResponse, TestServer};
use crate::http::wire_kit::{ask, model, request, with_tool};
use deerflow_core::messages::{Content, Message, MessageBody, MessageKind, ToolCall, ToolStatus};

fn sent(extra: Value, caches: bool, request: &ModelRequest) -> Value {
    let entry = ModelEntry {
        supports_thinking: true,
        supports_reasoning_effort: true,
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("e", "anthropic", "claude-x")
    };
    let (wire, endpoint) = Messages::of(
        &ModelEntry {
            api_key: Some("key".into()),
            ..entry.clone()
        },
        caches,
    )
    .unwrap();
    wire.call(
        request,
        &entry.settings_for(request).unwrap(),
        &endpoint,
        Some(&Credential::of("key")),
    )
    .body
    .to_value()
}

/// Returns parts as stored for this model.
fn made_by(model: &str, parts: Value) -> Value {
    json!({"provider": "anthropic", "server": "api.anthropic.com", "model": model, "parts": parts})
}

fn calling(calls: Vec<ToolCall>, parts: Value) -> Message {
    let kind = MessageKind::Ai {
        tool_calls: calls,
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let mut body = MessageBody::new(kind, "so");
    body.additional_kwargs
        .insert("provider_parts".to_owned(), made_by("claude-x", parts));
    body.additional_kwargs
        .insert("reasoning_content".to_owned(), json!("hm"));
    body.into()
}

#[test]
fn conversation_becomes_turns_with_thoughts_and_results() {
    let (a, b) = (
        ToolCall::new("functions.ls:0", "ls", Map::new()),
        ToolCall::new("b", "sh", Map::new()),
    );
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let signed = json!({"type": "thought", "bytes": 2, "extras": {"signature": "s"}});
    let parts = json!([signed, {"type": "text", "bytes": 2}, {"type": "call", "id": "functions.ls:0"}, {"type": "call", "id": "b"}]);
    let image = Content::Blocks(vec![
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}),
    ]);
    let messages = vec![
        Message::human("hi"),
        Message::system("More."),
        calling(vec![a.clone(), b.clone()], parts),
        Message::tool(&a, "x.txt", ToolStatus::Success),
        Message::tool(&b, image, ToolStatus::Error),
        Message::human("and?"),
    ];
    let body = sent(
        json!({"temperature": 0.5, "stop": "END"}),
        false,
        &with_tool(request(messages)),
    );
    assert_eq!(
        body,
        json!({
            "model": "claude-x", "max_tokens": 8192, "system": [{"type": "text", "text": "Rules.\n\nMore."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {"role": "assistant", "content": [
                    thought, {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "functions_ls_0", "name": "ls", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "sh", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "functions_ls_0", "content": [{"type": "text", "text": "x.txt"}]},
                    {"type": "tool_result", "tool_use_id": "b", "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                        {"type": "text", "text": "The call failed."}]},
                    {"type": "text", "text": "and?"},
                ]},
            ],
            "tools": [{"name": "ls", "description": "lists", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
            "stream": true, "stop_sequences": ["END"], "temperature": 0.5,
        })
    );
}

#[test]
fn thoughts_of_other_models_are_dropped() {
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": "s", "index": 0}, {"type": "thinking", "thinking": "unsigned"},
        {"type": "text", "text": "so"}, {"type": "tool_use", "id": "x", "name": "ls", "input": {}},
    ]);
    let other = Message::ai("plain").with(|body| {
        let parts = json!([{"type": "own", "value": {"type": "redacted_thinking", "data": "x"}}, {"type": "text", "bytes": 5}]);
        body.additional_kwargs.insert("provider_parts".to_owned(), made_by("claude-y", parts));
    });
    let written = |model: &str| {
        let answer = Message::ai(Content::Blocks(blocks.as_array().unwrap().clone()));
        answer.with(|body| {
            drop(
                body.response_metadata
                    .insert("model_name".to_owned(), json!(model)),
            )
        })
    };
    let messages = vec![
        Message::human("x"),
        written("claude-x-20990101"),
        Message::human("x"),
        other,
        Message::human("x"),
        written("claude-y"),
    ];
    let turns = &sent(json!({}), false, &request(messages))["messages"];
    assert_eq!(
        turns[1]["content"],
        json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "so"}])
    );
    assert_eq!(
        turns[3]["content"],
        json!([{"type": "text", "text": "plain"}])
    );
    assert_eq!(turns[5]["content"], json!([{"type": "text", "text": "so"}]));
}

#[test]
fn rejected_content_is_left_out_of_turns() {
    let call = ToolCall::new("a", "fs.read file", Map::new());
    let unsigned = json!([{"type": "thought", "bytes": 2}, {"type": "text", "bytes": 2}, {"type": "call", "id": "a"}]);
    let unanswered = json!([{"type": "thought", "bytes": 2, "extras": {"signature": "s"}}]);
    let blank = calling(vec![], unanswered).with(|body| body.content = " \n".into());
    let forged = calling(
        vec![],
        json!([{"type": "text", "bytes": 2}, {"type": "own", "value": [7]}]),
    );
    let messages = vec![
        Message::human(Content::Blocks(vec![
            json!({"type": "text", "text": "hi"}),
            json!({"type": "text", "text": "\n"}),
        ])),
        Message::system("  "),
        calling(vec![call.clone()], unsigned),
        Message::tool(&call, "\n", ToolStatus::Error),
        blank,
        Message::human(" "),
        forged,
    ];
    let body = sent(json!({}), true, &request(messages));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "Rules.", "cache_control": mark}])
    );
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "so"}, {"type": "tool_use", "id": "a", "name": "fs_read_file", "input": {}, "cache_control": mark},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": true, "cache_control": mark}]},
            {"role": "assistant", "content": [{"type": "text", "text": "so", "cache_control": mark}]},
        ])
    );
}

#[test]
fn thinking_gets_budget_and_drops_temperature() {
    let request = request(vec![Message::human("hi")]);
    let switched = |extra: Value| sent(extra, false, &request);
    let on = switched(
        json!({"thinking": {"type": "enabled"}, "max_tokens": 10_000, "temperature": 0.1, "top_k": 3, "top_p": 0.99}),
    );
    assert_eq!(
        (&on["thinking"], &on["max_tokens"]),
        (
            &json!({"type": "enabled", "budget_tokens": 8000}),
            &json!(10_000)
        )
    );
    assert_eq!(
        (on.get("temperature"), on.get("top_k"), &on["top_p"]),
        (None, None, &json!(0.99))
    );
    let small = switched(json!({"thinking": {"type": "enabled"}, "max_tokens": 100}));
    assert_eq!(
        (&small["thinking"]["budget_tokens"], &small["max_tokens"]),
        (&json!(1024), &json!(1124))
    );
    let given = switched(
        json!({"thinking": {"type": "enabled", "budget_tokens": 2000}, "reasoning_effort": "high"}),
    );
    assert_eq!(
        (&given["thinking"]["budget_tokens"], &given["output_config"]),
        (&json!(2000), &json!({"effort": "high"}))
    );
    let off = switched(
        json!({"thinking": {"type": "disabled"}, "temperature": 0.1, "reasoning_effort": "minimal"}),
    );
    assert_eq!(
        (
            &off["thinking"],
            &off["temperature"],
            off.get("output_config")
        ),
        (&json!({"type": "disabled"}), &json!(0.1), None)
    );
}

#[test]
fn at_most_four_cache_breakpoints_are_set() {
    let marks = |body: &Value| body.to_string().matches("cache_control").count();
    let long = request(
        ["a", "b", "c", "d", "e"]
            .map(Message::human)
            .into_iter()
            .flat_map(|human| [human, Message::ai("ok")])
            .collect(),
    );
    let cached = sent(json!({}), true, &with_tool(long.clone()));
    assert_eq!(marks(&cached), 4);
    assert!(
        cached["system"][0]["cache_control"].is_object()
            && cached["tools"][0]["cache_control"].is_object()
    );
    assert!(cached["messages"][9]["content"][0]["cache_control"].is_object());
    assert_eq!(
        marks(&sent(json!({"prompt_cache_size": 1}), true, &long)),
        2
    );
    assert_eq!(
        marks(&sent(json!({"enable_prompt_caching": false}), true, &long)),
        0
    );
    assert_eq!(marks(&sent(json!({}), false, &long)), 0);
}
