//! The request part by part, and the adapter against a local server.

use serde_json::json;

use super::*;
use crate::ModelErrorKind;
use crate::http::test_server::{TestResponse, TestServer};
use crate::http::wire_kit::{ask, model, request, with_tool};
use deerflow_core::messages::{Content, Message, MessageBody, MessageKind, ToolCall, ToolStatus};

fn sent(extra: Value, thinks: bool, request: &ModelRequest) -> Value {
    let entry = ModelEntry {
        supports_thinking: thinks,
        supports_reasoning_effort: thinks,
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("e", "ollama", "qwen")
    };
    let (wire, endpoint) = Chat::of(&entry).unwrap();
    wire.call(
        request,
        &entry.settings_for(request).unwrap(),
        &endpoint,
        None,
    )
    .body
    .to_value()
}

#[test]
fn conversation_and_options_use_ollama_format() {
    let call = ToolCall::new("a", "ls", json!({"path": "/"}).as_object().unwrap().clone());
    let kind = MessageKind::Ai {
        tool_calls: vec![call.clone()],
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let mut answer = MessageBody::new(kind, "so");
    answer
        .additional_kwargs
        .insert("reasoning_content".to_owned(), json!("hm"));
    let image = Content::Blocks(vec![
        json!("look"),
        json!({"type": "image_url", "image_url": "data:image/png;base64,AA"}),
    ]);
    let messages = vec![
        Message::human(image),
        answer.into(),
        Message::tool(&call, "x.txt", ToolStatus::Success),
    ];
    let extra = json!({"num_ctx": 32768, "max_tokens": 9, "temperature": 0, "keep_alive": "1h", "base_url": "http://h"});
    let body = sent(extra, false, &with_tool(request(messages)));
    assert_eq!(
        body,
        json!({
            "model": "qwen",
            "messages": [
                {"role": "system", "content": "Rules."},
                {"role": "user", "content": "look", "images": ["AA"]},
                {"role": "assistant", "content": "so", "thinking": "hm", "tool_calls": [{"function": {"name": "ls", "arguments": {"path": "/"}}}]},
                {"role": "tool", "content": "x.txt", "tool_name": "ls"},
            ],
            "tools": [{"type": "function", "function": {"name": "ls", "description": "lists",
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}],
            "stream": true, "options": {"num_ctx": 32768, "num_predict": 9, "temperature": 0}, "keep_alive": "1h",
        })
    );
}

#[test]
fn thinking_is_requested_only_if_supported() {
    let think = |extra: Value, thinks: bool, on: bool| {
        let request = ModelRequest {
            thinking: on,
            ..request(vec![])
        };
        sent(extra, thinks, &request).get("think").cloned()
    };
    assert_eq!(think(json!({}), false, true), None);
    assert_eq!(
        think(json!({"reasoning": true}), false, false),
        Some(json!(true))
    );
    assert_eq!(think(json!({}), true, true), Some(json!(true)));
    assert_eq!(
        think(json!({"reasoning": true}), true, false),
        Some(json!(false))
    );
    assert_eq!(
        think(json!({"reasoning_effort": "high"}), true, true),
        Some(json!("high"))
    );
}

const LINES: &str = "{\"message\":{\"content\":\"Grüße \"},\"done\":false}\n{\"message\":{\"content\":\"🦌\"},\"done\":false}\n";
const END: &str = "{\"done\":true,\"done_reason\":\"stop\",\"eval_count\":1}\n";

#[tokio::test]
async fn lines_are_decoded_and_broken_ones_have_a_kind() {
    let not_found = json!({"error": "model 'x' not found"});
    let table = [
        (
            TestResponse::Lines(format!("{LINES}{END}")),
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Bytewise(format!("{LINES}{END}")),
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Lines(LINES.to_owned()),
            "Grüße 🦌",
            Some(ModelErrorKind::Transient),
        ),
        (
            TestResponse::Lines(format!("{LINES}{{nope\n")),
            "Grüße 🦌",
            Some(ModelErrorKind::Transient),
        ),
        (
            TestResponse::Json(404, "", not_found),
            "",
            Some(ModelErrorKind::Config),
        ),
    ];
    for (answer, text, kind) in table {
        let server = TestServer::start([answer.clone()]).await;
        let (message, failure) = ask(
            &*model("ollama", json!({"base_url": server.address})),
            request(vec![Message::human("hi")]),
        )
        .await;
        assert_eq!(
            (
                message.content.text().as_str(),
                failure.map(|failure| failure.kind)
            ),
            (text, kind),
            "{answer:?}"
        );
        assert!(server.requests()[0].0.contains("post /api/chat "));
    }
}

#[tokio::test]
async fn address_ending_in_v1_uses_compatible_api() {
    let stream =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = TestServer::start([TestResponse::Stream(stream.to_owned())]).await;
    let keys = json!({"base_url": format!("{}/v1/", server.address), "num_predict": 9});
    let (message, failure) =
        ask(&*model("ollama", keys), request(vec![Message::human("hi")])).await;
    assert_eq!((message.content.text().as_str(), failure), ("hi", None));
    let (head, body) = &server.requests()[0];
    assert!(
        head.contains("post /v1/chat/completions ") && body["max_tokens"] == 9,
        "{head}"
    );
}
