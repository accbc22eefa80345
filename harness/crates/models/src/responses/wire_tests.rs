//! The request part by part, and the adapter against a local server.

use serde_json::json;

use super::*;
use crate::ModelErrorKind;
use crate::http::test_server::{TestResponse, TestServer};
use crate::http::wire_kit::{ask, model, request, with_tool};
use deerflow_core::messages::{Content, Message, MessageBody, MessageKind, ToolCall, ToolStatus};

fn sent(extra: Value, flavor: Flavor, supports: bool, request: &ModelRequest) -> Value {
    let entry = ModelEntry {
        supports_thinking: supports,
        supports_reasoning_effort: supports,
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("e", "openai", "gpt-x")
    };
    let (wire, endpoint) = Responses::read(
        &ModelEntry {
            api_key: Some("key".into()),
            ..entry.clone()
        },
        CODEX,
        flavor,
    )
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
fn conversation_becomes_items_with_reasoning() {
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
    let reasoning =
        json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "enc"});
    let parts = json!([{"type": "own", "value": reasoning}, {"type": "text", "bytes": 2}, {"type": "call", "id": "a"}, {"type": "call", "id": "b"}]);
    answer
        .additional_kwargs
        .insert("provider_parts".to_owned(), made_by("gpt-x", parts));
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}});
    let messages = vec![
        Message::human(Content::Blocks(vec![json!("look"), image.clone()])),
        answer.into(),
        Message::tool(&a, "x.txt", ToolStatus::Success),
        Message::tool(&b, Content::Blocks(vec![image]), ToolStatus::Success),
    ];
    let extra = json!({"max_tokens": 9, "stop": "END", "verbosity": "low", "temperature": 1});
    assert_eq!(
        sent(extra, Flavor::OpenAi, true, &with_tool(request(messages))),
        json!({
            "model": "gpt-x", "instructions": "Rules.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
                reasoning,
                {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "function_call", "call_id": "a", "name": "ls", "arguments": "{}"},
                {"type": "function_call", "call_id": "b", "name": "sh", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "x.txt"},
                {"type": "function_call_output", "call_id": "b",
                    "output": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
            ],
            "tools": [{"type": "function", "name": "ls", "description": "lists", "strict": false,
                "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}],
            "stream": true, "store": false, "max_output_tokens": 9, "text": {"verbosity": "low"},
            "include": ["reasoning.encrypted_content"], "temperature": 1,
        })
    );
}

/// Returns parts as stored for this model.
fn made_by(model: &str, parts: Value) -> Value {
    json!({"provider": "openai", "server": "chatgpt.com", "model": model, "parts": parts})
}

#[test]
fn rejected_content_is_left_out_of_items() {
    let reasoning = json!({"type": "own", "value": {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "enc"}});
    let call = ToolCall::new(
        format!("call_{}", "x".repeat(70)),
        "fs.read file",
        Map::new(),
    );
    let answer = |model: &str, calls: &[&ToolCall], parts: Value| {
        let tool_calls = calls.iter().map(|call| (*call).clone()).collect();
        let mut body = MessageBody::new(
            MessageKind::Ai {
                tool_calls,
                invalid_tool_calls: vec![],
                usage_metadata: None,
            },
            "",
        );
        body.additional_kwargs
            .insert("provider_parts".to_owned(), made_by(model, parts));
        Message::from(body)
    };
    let types = |supports: bool, messages: Vec<Message>| -> Vec<String> {
        let body = sent(json!({}), Flavor::OpenAi, supports, &request(messages));
        body["input"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["type"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let calling = json!([reasoning, {"type": "call", "id": call.id}]);
    assert_eq!(
        types(true, vec![answer("gpt-x", &[&call], calling.clone())]),
        ["reasoning", "function_call"]
    );
    assert_eq!(
        types(false, vec![answer("gpt-x", &[&call], calling.clone())]),
        ["function_call"]
    );
    assert_eq!(
        types(true, vec![answer("gpt-y", &[&call], calling.clone())]),
        ["function_call"]
    );
    assert!(
        types(true, vec![answer("gpt-x", &[], json!([reasoning]))]).is_empty(),
        "reasoning without a following item is dropped"
    );
    let messages = vec![
        answer("gpt-x", &[&call], calling),
        Message::tool(&call, "done", ToolStatus::Success),
    ];
    let input = sent(json!({}), Flavor::OpenAi, true, &request(messages))["input"].clone();
    assert_eq!(
        (&input[1]["name"], &input[1]["call_id"]),
        (&json!("fs_read_file"), &input[2]["call_id"])
    );
    assert!(
        input[1]["call_id"]
            .as_str()
            .is_some_and(|id| id.len() <= 64),
        "{input}"
    );
}

#[test]
fn effort_is_sent_only_if_supported() {
    let request_with = |thinking: bool, effort: Option<&str>| ModelRequest {
        thinking,
        reasoning_effort: effort.map(str::to_owned),
        ..request(vec![Message::human("hi")])
    };
    let reasoning = |extra: Value, flavor, supports, request: ModelRequest| {
        let body = sent(extra, flavor, supports, &request);
        (
            body.get("reasoning").cloned(),
            body.get("include").is_some(),
        )
    };
    assert_eq!(
        reasoning(
            json!({}),
            Flavor::OpenAi,
            false,
            request_with(true, Some("low"))
        ),
        (None, false)
    );
    assert_eq!(
        reasoning(
            json!({}),
            Flavor::OpenAi,
            true,
            request_with(true, Some("low"))
        ),
        (Some(json!({"effort": "low"})), true)
    );
    let given = json!({"reasoning": {"effort": "high", "summary": "auto"}});
    assert_eq!(
        reasoning(given, Flavor::OpenAi, false, request_with(false, None)),
        (Some(json!({"effort": "high", "summary": "auto"})), true)
    );
    let codex = |thinking, effort| {
        reasoning(
            json!({}),
            Flavor::Codex,
            true,
            request_with(thinking, effort),
        )
        .0
        .unwrap()
    };
    assert_eq!(
        codex(true, None),
        json!({"effort": "medium", "summary": "detailed"})
    );
    assert_eq!(
        codex(true, Some("xhigh")),
        json!({"effort": "xhigh", "summary": "detailed"})
    );
    assert_eq!(codex(true, Some("minimal"))["effort"], "medium");
    assert_eq!(codex(false, Some("high")), json!({"effort": "none"}));
    let refused = json!({"max_tokens": 5, "temperature": 0, "top_p": 1});
    let body = sent(
        refused.clone(),
        Flavor::Codex,
        true,
        &request_with(false, None),
    );
    assert!(
        refused
            .as_object()
            .unwrap()
            .keys()
            .all(|key| body.get(key).is_none())
            && body.get("max_output_tokens").is_none(),
        "{body}"
    );
}

const STREAM: &str = concat!(
    "data: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Grüße 🦌\"}\n\n",
);
const END: &str =
    "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";

#[tokio::test]
async fn use_responses_api_selects_the_wire() {
    let server = TestServer::start([TestResponse::Bytewise(format!("{STREAM}{END}"))]).await;
    let keys = json!({"base_url": format!("{}/v1", server.address), "api_key": "sk-canary", "use_responses_api": true});
    let (message, failure) =
        ask(&*model("openai", keys), request(vec![Message::human("hi")])).await;
    assert_eq!(
        (message.content.text().as_str(), failure),
        ("Grüße 🦌", None)
    );
    let (head, body) = &server.requests()[0];
    assert!(
        head.contains("post /v1/responses ") && head.contains("authorization: bearer sk-canary"),
        "{head}"
    );
    assert!(body.get("use_responses_api").is_none());
}

#[tokio::test]
async fn codex_uses_its_credentials_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    std::fs::write(
        &path,
        json!({"tokens": {"access_token": "token-canary", "account_id": "acc"}}).to_string(),
    )
    .unwrap();
    let no = json!({"detail": "token-canary is too old"});
    let delayed =
        json!({"type": "error", "code": "server_error", "message": "token-canary broke something"});
    let answers = [
        TestResponse::Stream(format!("{STREAM}{END}")),
        TestResponse::Json(401, "", no),
        TestResponse::Stream(format!("{STREAM}data: {delayed}\n\n")),
    ];
    let server = TestServer::start(answers).await;
    let model = model(
        "codex",
        json!({"base_url": server.address, "credentials_path": path.to_str().unwrap()}),
    );
    let (message, failure) = ask(&*model, request(vec![Message::human("hi")])).await;
    assert_eq!(
        (message.content.text().as_str(), failure),
        ("Grüße 🦌", None)
    );
    assert_eq!(message.response_metadata["model_provider"], "codex");
    let (head, body) = &server.requests()[0];
    for part in [
        "post /responses ",
        "authorization: bearer token-canary",
        "chatgpt-account-id: acc",
        "originator: ",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert_eq!(
        (&body["instructions"], &body["store"], &body["stream"]),
        (&json!("Rules."), &json!(false), &json!(true))
    );
    let failure = ask(&*model, request(vec![])).await.1.unwrap();
    assert!(
        failure.kind == ModelErrorKind::Auth && !failure.message.contains("canary"),
        "{failure}"
    );
    let failure = ask(&*model, request(vec![])).await.1.unwrap();
    assert_eq!(failure.message, "*** broke something");
}

#[test]
fn codex_api_key_is_sent_to_the_open_api() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    let address = |file: Value, keys: Value| {
        std::fs::write(&path, file.to_string()).unwrap();
        let mut entry = ModelEntry {
            extra: keys.as_object().unwrap().clone(),
            ..ModelEntry::new("e", "codex", "gpt-x")
        };
        entry
            .extra
            .insert("credentials_path".to_owned(), json!(path.to_str().unwrap()));
        let (wire, endpoint) = Responses::of_codex(&entry).unwrap();
        let key = endpoint.credentials.current().unwrap();
        wire.call(&request(vec![]), &Map::new(), &endpoint, key.as_ref())
            .url
            .to_string()
    };
    let (signed_in, key) = (
        json!({"tokens": {"access_token": "t"}}),
        json!({"OPENAI_API_KEY": "sk-k", "tokens": null}),
    );
    assert_eq!(
        address(signed_in, json!({})),
        "https://chatgpt.com/backend-api/codex/responses"
    );
    assert_eq!(
        address(key.clone(), json!({})),
        "https://api.openai.com/v1/responses"
    );
    assert_eq!(
        address(key, json!({"base_url": "https://own.test/v1"})),
        "https://own.test/v1/responses"
    );
}

#[tokio::test]
async fn broken_answers_have_an_error_kind() {
    let error =
        json!({"type": "error", "code": "server_error", "message": "The server had an error"});
    let table = [
        (
            TestResponse::Broken(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
        ),
        (
            TestResponse::Stream(STREAM.to_owned()),
            ModelErrorKind::Transient,
            "Grüße 🦌",
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: [DONE]\n\n")),
            ModelErrorKind::Transient,
            "Grüße 🦌",
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: {{nope\n\n")),
            ModelErrorKind::Transient,
            "Grüße 🦌",
        ),
        (
            TestResponse::Stream(format!("{STREAM}data: {error}\n\n")),
            ModelErrorKind::Transient,
            "Grüße 🦌",
        ),
        (
            TestResponse::Json(
                400,
                "",
                json!({"error": {"message": "bad input", "type": "invalid_request_error"}}),
            ),
            ModelErrorKind::BadRequest,
            "",
        ),
    ];
    for (answer, kind, text) in table {
        let server = TestServer::start([answer.clone()]).await;
        let keys = json!({"base_url": server.address, "use_responses_api": true});
        let (message, failure) =
            ask(&*model("openai", keys), request(vec![Message::human("hi")])).await;
        assert_eq!(
            (message.content.text().as_str(), failure.unwrap().kind),
            (text, kind),
            "{answer:?}"
        );
    }
}
