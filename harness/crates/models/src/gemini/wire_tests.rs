//! The request part by part, and the adapter against a local server.

use serde_json::json;

use super::*;
use crate::ModelErrorKind;
use crate::http::test_server::{TestResponse, TestServer};
use crate::http::wire_kit::{ask, model, request, with_tool};
use deerflow_core::messages::{Content, Message, MessageBody, MessageKind, ToolCall, ToolStatus};

const HOST: &str = "generativelanguage.googleapis.com";

fn sent(extra: Value, request: &ModelRequest) -> Value {
    sent_to("models/gemini-x", extra, request)
}

fn sent_to(model: &str, extra: Value, request: &ModelRequest) -> Value {
    let entry = ModelEntry {
        supports_thinking: true,
        supports_reasoning_effort: true,
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("e", "gemini", model)
    };
    let (wire, endpoint) = GenerateContent::of(&ModelEntry {
        api_key: Some("key".into()),
        ..entry.clone()
    })
    .unwrap();
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
fn conversation_becomes_contents_with_signatures() {
    let (a, b) = (
        ToolCall::new("a", "ls", Map::new()),
        ToolCall::new("b", "sh", Map::new()),
    );
    let kind = MessageKind::Ai {
        tool_calls: vec![a.clone(), b.clone()],
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let mut answer = MessageBody::new(kind, "so");
    let parts = json!([
        {"type": "text", "bytes": 2}, {"type": "call", "id": "a", "extras": {"thoughtSignature": "s"}}, {"type": "call", "id": "b"},
        {"type": "text", "bytes": 0, "extras": {"thoughtSignature": "t"}},
    ]);
    answer.additional_kwargs.insert(
        "provider_parts".to_owned(),
        json!({"provider": "google_genai", "server": HOST, "model": "gemini-x", "parts": parts}),
    );
    let blocks = json!([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": "data:image/png;base64,AA"}]);
    let content = Content::Blocks(blocks.as_array().unwrap().clone());
    let messages = vec![
        Message::human(content),
        Message::system("More."),
        answer.into(),
        Message::tool(&a, "x.txt", ToolStatus::Success),
        Message::tool(&b, "no", ToolStatus::Error).with(|body| body.name = None),
    ];
    assert_eq!(
        sent(json!({}), &with_tool(request(messages))),
        json!({
            "systemInstruction": {"parts": [{"text": "Rules.\n\nMore."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
                {"role": "model", "parts": [
                    {"text": "so"},
                    {"functionCall": {"name": "ls", "id": "a", "args": {}}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "sh", "id": "b", "args": {}}},
                    {"text": "", "thoughtSignature": "t"},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "ls", "id": "a", "response": {"result": "x.txt"}}},
                    {"functionResponse": {"name": "sh", "id": "b", "response": {"error": "no"}}},
                ]},
            ],
            "tools": [{"functionDeclarations": [{"name": "ls", "description": "lists",
                "parametersJsonSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]}],
        })
    );
}

#[test]
fn calls_of_other_models_are_marked_for_gemini_3() {
    let calls = ["a", "b"].map(|id| ToolCall::new(id, "fs/read", Map::new()));
    let kind = MessageKind::Ai {
        tool_calls: calls.to_vec(),
        invalid_tool_calls: vec![],
        usage_metadata: None,
    };
    let foreign = json!({"provider": "google_genai", "server": HOST, "model": "gemini-2.5-pro",
        "parts": [{"type": "call", "id": "a", "extras": {"thoughtSignature": "foreign"}}, {"type": "call", "id": "b"}]});
    let mut answer = MessageBody::new(kind, "");
    answer
        .additional_kwargs
        .insert("provider_parts".to_owned(), foreign);
    let call_model = request(vec![
        Message::human("go"),
        answer.into(),
        Message::tool(&calls[0], "x", ToolStatus::Success),
    ]);
    for (model, first) in [
        (
            "gemini-3-pro-preview",
            Some("skip_thought_signature_validator"),
        ),
        ("gemini-3.1-flash", Some("skip_thought_signature_validator")),
        ("gemini-2.5-pro", Some("foreign")),
        ("gemini-2.5-flash", None),
        ("gemma-3", None),
    ] {
        let contents = sent_to(model, json!({}), &call_model)["contents"].clone();
        let signature = |at: usize| {
            contents[1]["parts"][at]
                .get("thoughtSignature")
                .and_then(Value::as_str)
        };
        assert_eq!((signature(0), signature(1)), (first, None), "{model}");
        assert_eq!(contents[1]["parts"][0]["functionCall"]["name"], "fs_read");
        assert_eq!(
            contents[2]["parts"][0]["functionResponse"]["name"],
            "fs_read"
        );
    }
}

#[test]
fn always_thinking_models_get_no_zero_budget() {
    let off = json!({"thinking": {"type": "disabled"}});
    for (model, budget) in [
        ("gemini-2.5-flash", Some(0)),
        ("gemini-2.5-pro", None),
        ("gemini-3-flash-preview", None),
    ] {
        let body = sent_to(model, off.clone(), &request(vec![Message::human("hi")]));
        assert_eq!(
            body.pointer("/generationConfig/thinkingConfig/thinkingBudget")
                .and_then(Value::as_u64),
            budget,
            "{model}"
        );
    }
}

#[test]
fn settings_are_mapped_to_api_fields() {
    let call_model = request(vec![Message::human("hi")]);
    let extra = json!({"temperature": 0.5, "max_tokens": 9, "stop": "END", "safety_settings": {"HARM_X": "BLOCK_NONE"},
        "extra_body": {"cachedContent": "c"}, "google_api_key": "secret"});
    let body = sent(extra, &call_model);
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "maxOutputTokens": 9, "stopSequences": ["END"]})
    );
    assert_eq!(
        body["safetySettings"],
        json!([{"category": "HARM_X", "threshold": "BLOCK_NONE"}])
    );
    assert!(body["cachedContent"] == "c" && !body.to_string().contains("secret"));
    let thinking = |extra: Value, on: bool| {
        let request = ModelRequest {
            thinking: on,
            ..call_model.clone()
        };
        sent(extra, &request)
            .pointer("/generationConfig/thinkingConfig")
            .cloned()
    };
    assert_eq!(thinking(json!({}), false), None);
    assert_eq!(
        thinking(json!({}), true),
        Some(json!({"includeThoughts": true}))
    );
    assert_eq!(
        thinking(json!({"thinking_budget": 5}), true),
        Some(json!({"includeThoughts": true, "thinkingBudget": 5}))
    );
    assert_eq!(
        thinking(json!({"thinking": {"type": "disabled"}}), false),
        Some(json!({"thinkingBudget": 0}))
    );
    assert_eq!(
        thinking(json!({"reasoning_effort": "low"}), true),
        Some(json!({"includeThoughts": true, "thinkingLevel": "low"}))
    );
}

const STREAM: &str =
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Grüße 🦌\"}]}}]}\r\n\r\n";
const END: &str = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":1}}\r\n\r\n";

async fn call_model(
    answer: TestResponse,
) -> (String, Option<crate::ModelError>, Vec<(String, Value)>) {
    let server = TestServer::start([answer]).await;
    let keys =
        json!({"base_url": format!("{}/v1beta", server.address), "gemini_api_key": "key-canary"});
    let (message, failure) =
        ask(&*model("gemini", keys), request(vec![Message::human("hi")])).await;
    (message.content.text(), failure, server.requests())
}

#[tokio::test]
async fn stream_is_requested_and_decoded_bytewise() {
    let (text, failure, requests) =
        call_model(TestResponse::Bytewise(format!("{STREAM}{END}"))).await;
    assert_eq!((text.as_str(), failure), ("Grüße 🦌", None));
    for part in [
        "post /v1beta/models/model-x:streamgeneratecontent?alt=sse ",
        "x-goog-api-key: key-canary",
    ] {
        assert!(requests[0].0.contains(part), "{part}: {}", requests[0].0);
    }
}

#[tokio::test]
async fn broken_answers_have_an_error_kind() {
    let quota = |details: Value| json!({"error": {"code": 429, "message": "You exceeded your current quota", "status": "RESOURCE_EXHAUSTED", "details": details}});
    let retry = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]);
    let table = [
        (
            TestResponse::Broken(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Stream(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: {{nope\n\n")),
            ModelErrorKind::Transient,
            "Grüße 🦌",
            None,
        ),
        (
            TestResponse::Json(429, "", quota(retry)),
            ModelErrorKind::Transient,
            "",
            Some(34),
        ),
        (
            TestResponse::Json(429, "", quota(json!([]))),
            ModelErrorKind::Quota,
            "",
            None,
        ),
        (
            TestResponse::Json(
                400,
                "",
                json!([{"error": {"code": 400, "message": "API key not valid: key-canary", "status": "INVALID_ARGUMENT"}}]),
            ),
            ModelErrorKind::Auth,
            "",
            None,
        ),
        (
            TestResponse::Json(
                503,
                "",
                json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
            ),
            ModelErrorKind::Transient,
            "",
            None,
        ),
    ];
    for (answer, kind, expected_text, wait) in table {
        let (text, failure, _) = call_model(answer.clone()).await;
        let failure = failure.unwrap();
        assert_eq!(
            (
                text.as_str(),
                failure.kind,
                failure.retry_after.map(|wait| wait.as_secs())
            ),
            (expected_text, kind, wait),
            "{answer:?}"
        );
        assert!(!failure.message.contains("canary"), "{failure}");
    }
}
