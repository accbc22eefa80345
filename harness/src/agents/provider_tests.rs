//! The lead agent with every provider's wire format: a turn with a tool call against a real server,
//! in a full runtime.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::test_support::transcript;
use crate::agents::StaticResolver;
use crate::agents::lead::{LEAD_AGENT, LeadAgentSpec, LeadAgents};
use crate::clock::SystemClock;
use crate::config::ModelConfig;
use crate::ids::ThreadId;
use crate::messages::Message;
use crate::models::ModelCatalog;
use crate::models::http::test_server::{TestResponse, TestServer};
use crate::runtime::in_memory::runtime_in_memory;
use crate::runtime::runs::{RunLimits, RunRequest, RunsFacade};
use crate::tools::{Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};

#[derive(Debug, Deserialize, JsonSchema)]
struct WeatherArgs {
    city: String,
}

struct Weather;

impl Tool for Weather {
    type Args = WeatherArgs;

    fn name(&self) -> &str {
        "weather"
    }

    fn description(&self) -> &str {
        "Tells the weather of a city."
    }

    async fn call(&self, args: WeatherArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(format!("sunny in {}", args.city).into())
    }
}

fn stream(events: &[Value]) -> TestResponse {
    TestResponse::Stream(
        events
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect(),
    )
}

/// Returns the messages of the thread after the question, and the request bodies that the provider
/// received. The title request is separate.
async fn turn(kind: &str, keys: Value, answers: Vec<TestResponse>) -> (Vec<Message>, Vec<Value>) {
    let server = TestServer::start(answers).await;
    let mut entry = json!({"api_key": "key-for-tests"});
    entry
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let messages = turn_at(&server, kind, entry, "Weather in Köln?").await;
    (
        messages,
        server
            .requests()
            .into_iter()
            .map(|(_, body)| body)
            .collect(),
    )
}

/// Returns the messages of the thread after `words`.
async fn turn_at(server: &TestServer, kind: &str, keys: Value, words: &str) -> Vec<Message> {
    let mut entry = json!({"name": "m", "use": kind, "model": "model-x", "base_url": server.address,
        "supports_thinking": true, "max_tokens": 2000});
    entry
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    let models = [serde_json::from_value::<ModelConfig>(entry).unwrap()];
    let models = Arc::new(ModelCatalog::from_config(&models, Arc::new(SystemClock)));
    let mut spec = LeadAgentSpec {
        tools: ToolRegistry::new().with(Weather),
        ..LeadAgentSpec::new(models)
    };
    spec.title.enabled = false;
    let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec));
    let runs = RunsFacade::new(
        runtime_in_memory(Arc::new(agents)).unwrap(),
        RunLimits::default(),
    );
    let thread = ThreadId::parse("t").unwrap();
    runs.create_and_wait(RunRequest::ask(
        LEAD_AGENT,
        thread.clone(),
        Message::human(words),
    ))
    .await
    .unwrap();
    let stored = runs
        .runtime()
        .ports()
        .checkpointer
        .get(&thread, None)
        .await
        .unwrap()
        .unwrap();
    stored.state.messages().to_vec()
}

const TRANSCRIPT: [&str; 4] = [
    "human:Weather in Köln?",
    "ai:Let me look.",
    "tool:sunny in Köln",
    "ai:It is sunny.",
];

fn offers_the_tool(body: &Value) -> bool {
    body["tools"].to_string().contains("\"weather\"") && body["tools"].to_string().contains("city")
}

#[tokio::test]
async fn chat_completions_runs_a_tool_turn() {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
    let finish =
        |reason: &str| json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{\"city\":\"Köln\"}"}}]});
    let answers = vec![
        stream(&[
            delta(json!({"content": "Let me look.", "reasoning_content": "hm"})),
            delta(call),
            finish("tool_calls"),
        ]),
        stream(&[delta(json!({"content": "It is sunny."})), finish("stop")]),
    ];
    for kind in ["openai", "deepseek", "minimax"] {
        let (messages, requests) = turn(kind, json!({}), answers.clone()).await;
        assert_eq!(transcript(&messages), TRANSCRIPT, "{kind}");
        assert!(offers_the_tool(&requests[0]));
        let sent = requests[1]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .take(2)
            .collect::<Vec<_>>();
        assert_eq!(
            (&sent[0]["role"], &sent[0]["tool_call_id"]),
            (&json!("tool"), &json!("a"))
        );
        assert_eq!(
            sent[1].get("reasoning_content"),
            (kind == "deepseek").then_some(&json!("hm")),
            "{kind}"
        );
    }
}

#[tokio::test]
async fn anthropic_tool_turn_returns_signed_thoughts() {
    let block = |index: usize, head: Value, delta: Value| {
        [
            json!({"type": "content_block_start", "index": index, "content_block": head}),
            json!({"type": "content_block_delta", "index": index, "delta": delta}),
            json!({"type": "content_block_stop", "index": index}),
        ]
    };
    let start = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}});
    let end = |reason: &str| {
        [
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            json!({"type": "message_stop"}),
        ]
    };
    let first = [
        vec![start.clone()],
        block(
            0,
            json!({"type": "thinking"}),
            json!({"type": "thinking_delta", "thinking": "hm", "signature": "signed"}),
        )
        .to_vec(),
        block(
            1,
            json!({"type": "text"}),
            json!({"type": "text_delta", "text": "Let me look."}),
        )
        .to_vec(),
        block(
            2,
            json!({"type": "tool_use", "id": "a", "name": "weather"}),
            json!({"partial_json": "{\"city\":\"Köln\"}"}),
        )
        .to_vec(),
        end("tool_use").to_vec(),
    ];
    let text = block(
        0,
        json!({"type": "text"}),
        json!({"type": "text_delta", "text": "It is sunny."}),
    );
    let second = [vec![start], text.to_vec(), end("end_turn").to_vec()];
    let answers = vec![stream(&first.concat()), stream(&second.concat())];
    let (messages, requests) =
        turn("claude", json!({"thinking": {"type": "enabled"}}), answers).await;
    assert_eq!(transcript(&messages), TRANSCRIPT);
    assert!(offers_the_tool(&requests[0]));
    let turns = requests[1]["messages"].as_array().unwrap();
    assert_eq!(
        turns[1]["content"][0],
        json!({"type": "thinking", "thinking": "hm", "signature": "signed"})
    );
    assert_eq!(
        (&turns[2]["role"], &turns[2]["content"][0]["tool_use_id"]),
        (&json!("user"), &json!("a"))
    );
    assert!(requests[1].to_string().contains("cache_control"));
}

#[tokio::test]
async fn gemini_tool_turn_returns_signatures() {
    let event = |parts: Value, reason: Value| json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason}]});
    let call = json!([{"functionCall": {"name": "weather", "args": {"city": "Köln"}}, "thoughtSignature": "signed"}]);
    let answers = vec![
        stream(&[
            event(json!([{"text": "Let me look."}]), Value::Null),
            event(call, json!("STOP")),
        ]),
        stream(&[event(json!([{"text": "It is sunny."}]), json!("STOP"))]),
    ];
    let (messages, requests) = turn("gemini", json!({}), answers).await;
    assert_eq!(transcript(&messages), TRANSCRIPT);
    assert!(offers_the_tool(&requests[0]));
    let contents = requests[1]["contents"].as_array().unwrap();
    assert_eq!(contents[1]["parts"][1]["thoughtSignature"], "signed");
    assert_eq!(
        contents[2]["parts"][0]["functionResponse"]["response"]["result"],
        "sunny in Köln"
    );
}

#[tokio::test]
async fn ollama_runs_a_tool_turn() {
    let lines = |lines: &[Value]| {
        TestResponse::Lines(lines.iter().map(|line| format!("{line}\n")).collect())
    };
    let call =
        json!({"tool_calls": [{"function": {"name": "weather", "arguments": {"city": "Köln"}}}]});
    let answers = vec![
        lines(&[
            json!({"message": {"content": "Let me look."}}),
            json!({"message": call}),
            json!({"done": true, "done_reason": "stop"}),
        ]),
        lines(&[
            json!({"message": {"content": "It is sunny."}}),
            json!({"done": true, "done_reason": "stop"}),
        ]),
    ];
    let (messages, requests) = turn("ollama", json!({"num_ctx": 9000}), answers).await;
    assert_eq!(transcript(&messages), TRANSCRIPT);
    assert!(offers_the_tool(&requests[0]) && requests[0]["options"]["num_ctx"] == 9000);
    let sent = requests[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        sent,
        &json!({"role": "tool", "content": "sunny in Köln", "tool_name": "weather"})
    );
}

#[tokio::test]
async fn responses_and_codex_tool_turn_returns_reasoning() {
    let done = |index: usize, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let text =
        |text: &str| json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{\"city\":\"Köln\"}"});
    let reasoning =
        json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "enc"});
    let completed = json!({"type": "response.completed", "response": {"status": "completed"}});
    let answers = vec![
        stream(&[
            done(0, reasoning.clone()),
            done(1, text("Let me look.")),
            done(2, call),
            completed.clone(),
        ]),
        stream(&[done(0, text("It is sunny.")), completed]),
    ];
    for (kind, keys) in [
        ("openai", json!({"use_responses_api": true})),
        ("codex", json!({})),
    ] {
        let (messages, requests) = turn(kind, keys, answers.clone()).await;
        assert_eq!(transcript(&messages), TRANSCRIPT, "{kind}");
        assert!(offers_the_tool(&requests[0]));
        let items = requests[1]["input"].as_array().unwrap();
        assert_eq!(items[1], reasoning);
        assert_eq!(
            items[4],
            json!({"type": "function_call_output", "call_id": "a", "output": "sunny in Köln"})
        );
    }
}

#[tokio::test]
async fn codex_continues_with_the_renewed_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auth.json");
    let keys = json!({"credentials_path": path.to_str().unwrap()});
    let write = move |token: &str| {
        let tokens = json!({"access_token": token, "account_id": "acc", "refresh_token": "r"});
        std::fs::write(
            &path,
            json!({"OPENAI_API_KEY": null, "tokens": tokens}).to_string(),
        )
        .unwrap();
    };
    write("old-token");
    let done = json!({"type": "message", "content": [{"type": "output_text", "text": "Here."}]});
    let sent = stream(&[
        json!({"type": "response.output_item.done", "output_index": 0, "item": done}),
        json!({"type": "response.completed", "response": {"status": "completed"}}),
    ]);
    let refusal = TestResponse::Json(401, "", json!({"detail": "token expired"}));
    let server = TestServer::start_with([refusal, sent], move |_| write("new-token")).await;
    let messages = turn_at(&server, "codex", keys, "hi").await;
    assert_eq!(transcript(&messages), ["human:hi", "ai:Here."]);
    let heads: Vec<String> = server
        .requests()
        .into_iter()
        .map(|(head, _)| head)
        .collect();
    assert_eq!(heads.len(), 2, "the rejected call is repeated once");
    for (head, token) in heads.iter().zip(["old-token", "new-token"]) {
        for part in [
            &format!("authorization: bearer {token}"),
            "chatgpt-account-id: acc",
            "originator: deerflow",
        ] {
            assert!(head.contains(part), "{part}: {head}");
        }
    }
}

#[tokio::test]
async fn fallback_entry_answers_after_a_permanent_failure() {
    let refusal = TestResponse::Json(
        402,
        "",
        json!({"error": {"message": "insufficient balance", "code": "insufficient_quota"}}),
    );
    let broke = TestServer::start([refusal]).await;
    let well = [
        json!({"choices": [{"index": 0, "delta": {"content": "Here."}, "finish_reason": "stop"}]}),
    ];
    let well = TestServer::start([stream(&well)]).await;
    let entry = |name: &str, address: &str, fallbacks: Value| {
        let keys = json!({"name": name, "use": "openai", "model": "x", "base_url": address, "fallback_models": fallbacks});
        serde_json::from_value::<ModelConfig>(keys).unwrap()
    };
    let models = [
        entry("first", &broke.address, json!(["second"])),
        entry("second", &well.address, json!([])),
    ];
    let models = Arc::new(ModelCatalog::from_config(&models, Arc::new(SystemClock)));
    let mut spec = LeadAgentSpec::new(models);
    spec.title.enabled = false;
    let agents = StaticResolver::new().with(LEAD_AGENT, LeadAgents::new(spec));
    let runs = RunsFacade::new(
        runtime_in_memory(Arc::new(agents)).unwrap(),
        RunLimits::default(),
    );
    let thread = ThreadId::parse("t").unwrap();
    runs.create_and_wait(RunRequest::ask(
        LEAD_AGENT,
        thread.clone(),
        Message::human("hi"),
    ))
    .await
    .unwrap();
    let stored = runs
        .runtime()
        .ports()
        .checkpointer
        .get(&thread, None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        transcript(stored.state.messages()),
        ["human:hi", "ai:Here."]
    );
    assert_eq!((broke.requests().len(), well.requests().len()), (1, 1));
}
