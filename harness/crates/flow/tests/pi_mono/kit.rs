//! One turn of an adapter against a local server.

use std::time::Duration;

use deerflow_flow::adapter::{
    AdapterFactory, AgentInvocation, AgentTurnResult, SessionId, TurnMode, TurnRuntime,
};
use deerflow_flow::adapters::pi_mono::PiMonoOptions;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::http_server::{HttpServer, Reply};
use crate::pi_mono_kit::{
    Deltas, adapter_context, agent, factory, invocation, object, result_json, session_context,
};

/// Key that no output may contain.
pub(crate) const CANARY: &str = "canary-key-1234";
/// Idle timeout of adapters under test.
const IDLE: Duration = Duration::from_millis(300);

/// A finished turn.
pub(crate) struct Turn {
    /// Result.
    pub(crate) result: AgentTurnResult,
    /// JSON form of the result.
    pub(crate) json: Value,
    /// Text of all fragments.
    pub(crate) streamed: String,
    /// Server with its requests.
    pub(crate) server: HttpServer,
}

/// Executes a turn of this transport whose server sends one answer to every request.
pub(crate) async fn turn(transport: &str, reply: Reply) -> Turn {
    turn_with(
        transport,
        TurnMode::Normal,
        move |_, _| reply.clone(),
        |_| (),
    )
    .await
}

/// Executes a turn after a change of the invocation.
pub(crate) async fn turn_with(
    transport: &str,
    mode: TurnMode,
    answer: impl Fn(&crate::http_server::Recorded, usize) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(&mut AgentInvocation),
) -> Turn {
    let server = HttpServer::start(answer).await;
    let base = format!("http://server.test:{}", server.port);
    let config = json!({
        "transport": transport, "baseUrl": base, "apiKey": CANARY, "model": "m", "note": "sent",
    });
    let agent = agent(config);
    let factory = factory(PiMonoOptions {
        allowed_origins: vec![base],
        ..PiMonoOptions::default()
    })
    .with_idle_timeout(IDLE);
    let adapter = factory.create(adapter_context(&agent)).await.unwrap();
    let mut invocation = invocation(&agent, SessionId("S0".to_owned()), mode);
    change(&mut invocation);
    let (deltas, cancel) = (Deltas::default(), CancellationToken::new());
    let result = adapter
        .run_turn(invocation, TurnRuntime::default(), &deltas, cancel)
        .await;
    let outputs = format!("{result:?} {adapter:?} {factory:?} {:?}", deltas.all());
    assert!(!outputs.contains(CANARY), "{outputs}");
    for request in server.requests() {
        assert!(!request.body.contains(CANARY), "{}", request.body);
        let bearer = format!("Bearer {CANARY}");
        assert_eq!(request.headers["authorization"], bearer.as_str());
    }
    Turn {
        json: result_json(&result),
        result,
        streamed: deltas.all().into_iter().map(|delta| delta.text).collect(),
        server,
    }
}

impl Turn {
    /// Asserts a failed turn of this code.
    pub(crate) fn assert_failed(&self, code: &str, retryable: bool) {
        let error = self.result.error.as_ref().unwrap();
        let found = (error.code.as_str(), error.retryable);
        assert_eq!(found, (code, retryable), "{}", self.json);
        assert!(error.message.chars().count() <= 2_000);
    }
}

/// Opens a session of an agent of this configuration. The error is the code of the failure.
pub(crate) async fn open(
    options: PiMonoOptions,
    config: Value,
    kind: &str,
) -> Result<SessionId, String> {
    let factory = factory(options);
    let mut agent = (*agent(config)).clone();
    kind.clone_into(&mut agent.adapter_kind);
    let agent = agent.into();
    let code = |error: deerflow_flow::adapter::FlowError| {
        let findings = object(Value::Object(error.details))
            .get("findings")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let codes = findings
            .iter()
            .filter_map(|finding| finding["code"].as_str());
        format!("{} {}", error.code, codes.collect::<Vec<_>>().join(" "))
    };
    let adapter = factory
        .create(adapter_context(&agent))
        .await
        .map_err(code)?;
    adapter
        .create_session(session_context(&agent))
        .await
        .map_err(code)
}
