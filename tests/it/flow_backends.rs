//! Agents of flows behind real HTTP backends that misbehave: what runs report, and what reaches the
//! backends.

use deerflow_tests::scripted_pi_mono::ScriptedPiMono;
use serde_json::{Value, json};

use crate::rig::{Rig, text, until};

/// One node whose turns have two attempts and a short limit.
const ONE: &str = "
meta: {schemaVersion: '2.0', name: One}
agents:
  agentDefs:
    - {agentId: far, adapterKind: pi-mono, modelProfile: {model: m}, adapterConfig: {transport: TRANSPORT}}
graph:
  startNodeId: ask
  nodes:
    - {nodeId: ask, nodeKind: agent.main, agentId: far, config: {timeoutMs: 1500, retry: {maxAttempts: 2, initialIntervalMs: 1}}}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: ask, target: finish}
";
/// Key that only the backend may receive.
const KEY: &str = "canary-flow-5c7d";

/// Starts a gateway with the flow, whose agent is behind this address.
async fn rig(transport: &str, base_url: &str) -> Rig {
    let adapter = format!("{{base_url: '{base_url}', api_key: {KEY}}}");
    let rig = Rig::with(&format!("flows: {{adapters: {{pi-mono: {adapter}}}}}\n")).await;
    let content = ONE.replace("TRANSPORT", transport);
    let flow = json!({"id": "one", "content": content});
    let stored = rig.post("/api/flows", &flow).await;
    assert_eq!(stored.status.as_u16(), 201, "{}", stored.text);
    rig
}

/// Runs the flow and returns its result, or the code of its error.
async fn outcome(rig: &Rig, prompt: &str) -> Result<String, String> {
    let thread = rig.thread().await;
    let asked = json!({"assistant_id": "flow-one", "input": {"userPrompt": prompt}});
    let wait = format!("/threads/{thread}/runs/wait");
    let end = rig.post(&wait, &asked).await.ok();
    assert!(!end.to_string().contains(KEY), "{end}");
    match &end["__error__"] {
        Value::Null => Ok(text(&end["result"]).to_owned()),
        error => Err(text(&error["error"]).to_owned()),
    }
}

fn failed<T>(code: &str) -> Result<T, String> {
    Err(code.to_owned())
}

#[tokio::test]
async fn pi_mono_backend_that_misbehaves_fails_its_node_only() {
    let backend = ScriptedPiMono::start(0).await.expect("backend");
    let rig = rig("pi-mono", &backend.base_url()).await;
    let fine = || Ok("x".to_owned());
    // Prompt, outcome, turns, aborts.
    let table = [
        ("then say x", fine(), 1, 0),
        ("[[slow 3x5ms]]", Ok("tok0 tok1 tok2".to_owned()), 1, 0),
        ("[[error 429 times=1 after=1]] then say x", fine(), 2, 0),
        ("[[error 402]]", failed("PI_MONO_REQUEST_FAILED"), 1, 0),
        ("[[error 503]]", failed("PI_MONO_REQUEST_FAILED"), 2, 0),
        ("[[cut 1]] a b c", failed("PI_MONO_REQUEST_FAILED"), 2, 0),
        ("[[garbage]]", failed("PI_MONO_BAD_RESPONSE"), 1, 0),
        ("[[hang]]", failed("PI_MONO_TIMEOUT"), 2, 2),
    ];
    for (prompt, expected, turns, aborts) in table {
        let before = (backend.turns().len(), backend.aborts().len());
        assert_eq!(outcome(&rig, prompt).await, expected, "{prompt}");
        let counted = (
            backend.turns().len() - before.0,
            backend.aborts().len() - before.1,
        );
        assert_eq!(counted, (turns, aborts), "{prompt}");
        until("the end of the session", async || {
            (backend.sessions_open() == 0).then_some(())
        })
        .await;
    }
    assert!(!rig.gateway.logs().contains(KEY));
}

#[tokio::test]
async fn session_that_the_backend_forgot_is_created_again_once() {
    let backend = ScriptedPiMono::start(0).await.expect("backend");
    let rig = rig("pi-mono", &backend.base_url()).await;
    let thread = rig.thread().await;
    let asked = json!({"assistant_id": "flow-one", "input": {"userPrompt": "[[error 503 times=1 after=1]] then say x"}});
    let run = rig.background(&thread, &asked).await;
    until("the first turn", async || {
        (!backend.turns().is_empty()).then_some(())
    })
    .await;
    backend.forget_sessions();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    assert_eq!(backend.sessions_created(), 2);
    let turns = backend.turns();
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert_ne!(turns[0].invocation, turns[1].invocation);
}

#[tokio::test]
async fn deepseek_backend_that_misbehaves_fails_its_node_only() {
    let model = crate::rig::strict_model().await;
    let rig = rig("deepseek", &model.base_url).await;
    let fine = || Ok("x".to_owned());
    let table = [
        ("then say x", fine(), 1),
        ("[[error 429 times=1 after=1]] then say x", fine(), 2),
        ("[[garbage]] then say x", fine(), 1),
        (
            "[[error 402]]",
            failed("PI_MONO_DEEPSEEK_REQUEST_FAILED"),
            1,
        ),
        (
            "[[error 503]]",
            failed("PI_MONO_DEEPSEEK_REQUEST_FAILED"),
            2,
        ),
        ("[[cut 1]] a b c", failed("PI_MONO_REQUEST_FAILED"), 2),
        ("[[hang]]", failed("PI_MONO_TIMEOUT"), 2),
    ];
    for (prompt, expected, calls) in table {
        let before = model.requests().len();
        assert_eq!(outcome(&rig, prompt).await, expected, "{prompt}");
        assert_eq!(model.requests().len() - before, calls, "{prompt}");
    }
    assert!(!rig.gateway.logs().contains(KEY));
}
