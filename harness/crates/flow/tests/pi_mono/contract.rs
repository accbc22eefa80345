//! Both transports keep the contract of adapters.

use std::sync::Arc;

use deerflow_flow::adapters::pi_mono::PiMonoOptions;
use deerflow_flow::testkit::{AdapterSubject, adapter_keeps_the_contract};
use serde_json::{Value, json};

use super::kit::CANARY;
use crate::http_server::{HttpServer, Recorded, Reply};
use crate::pi_mono_kit::{agent, factory};

const FAILING_PROMPT: &str = "fail";

/// Answers a request unless its body has the failing prompt. Each session has its own id.
fn answer(body: Value) -> impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static {
    move |request, before| {
        let is_failing = request.body.contains(&format!("\"{FAILING_PROMPT}\""));
        match request.path.as_str() {
            "/sessions" => Reply::json(200, &json!({"sessionId": format!("S{before}")})),
            _ if is_failing => Reply::text(400, "no"),
            _ => Reply::json(200, &body),
        }
    }
}

async fn check(transport: &str, body: Value) {
    let server = HttpServer::start(answer(body)).await;
    let base = format!("http://server.test:{}", server.port);
    let config = json!({
        "transport": transport, "baseUrl": base, "apiKey": CANARY, "model": "m",
    });
    let options = PiMonoOptions {
        allowed_origins: vec![base],
        ..PiMonoOptions::default()
    };
    let subject = AdapterSubject {
        factory: Arc::new(factory(options)),
        agent: agent(config),
        succeeding_prompt: "work".to_owned(),
        succeeding_node: "n".to_owned(),
        failing_prompt: FAILING_PROMPT.to_owned(),
        failing_node: "n".to_owned(),
        runtime: Default::default(),
    };
    adapter_keeps_the_contract(&subject).await;
}

#[tokio::test]
async fn http_transport_keeps_the_contract() {
    check("http", json!({"finalText": "one two"})).await;
}

#[tokio::test]
async fn deepseek_transport_keeps_the_contract() {
    let choice = json!({"message": {"content": "one two"}, "finish_reason": "stop"});
    check("deepseek", json!({"choices": [choice]})).await;
}
