//! Keys of configuration, environment and flows reach their backend in a header and nothing else.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use deerflow_tests::local_server::LocalServer;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};

use crate::flow_projects::files_below;
use crate::rig::{CANARY, HttpResponse, Rig, config};

const CONFIG_KEY: &str = "canary-config-7d1f0a";
const ENVIRONMENT_KEY: &str = "canary-environment-52c9be";
/// Keys that the text of the flow has.
const FLOW_KEYS: [&str; 5] = [
    AGENT_KEY,
    "canary-flow-1",
    "canary-flow-2",
    "canary-flow-3",
    "canary-flow-4",
];
const AGENT_KEY: &str = "canary-agent-90ab12";

fn flow(backend: &str) -> String {
    format!(
        "
meta: {{schemaVersion: '2.0', name: Keys}}
runtime: {{adapterConfig: {{pi-mono: {{transport: http, headers: {{Authorization: Bearer canary-flow-1}}}}}}}}
agents:
  agentDefs:
    - {{agentId: of-server, adapterKind: pi-mono}}
    - agentId: of-flow
      adapterKind: pi-mono
      modelProfile: {{model: m, apiKey: canary-flow-2}}
      adapterConfig: {{baseUrl: '{backend}', apiKey: {AGENT_KEY}, nested: {{list: [{{token: canary-flow-3}}]}}}}
    - {{agentId: plain, adapterKind: model}}
graph:
  startNodeId: fetch
  nodes:
    - nodeId: fetch
      nodeKind: loader.http-auth
      config: {{url: '{backend}/file', authType: bearer, authToken: canary-flow-4, onError: continue}}
    - {{nodeId: one, nodeKind: agent.sub, agentId: of-server}}
    - {{nodeId: two, nodeKind: agent.sub, agentId: of-flow}}
    - {{nodeId: three, nodeKind: agent.sub, agentId: of-flow, config: {{userPrompt: refuse, onError: continue}}}}
    - {{nodeId: four, nodeKind: agent.sub, agentId: of-server, config: {{userPrompt: refuse, onError: continue}}}}
    - {{nodeId: five, nodeKind: agent.main, agentId: plain}}
    - {{nodeId: finish, nodeKind: control.finish}}
  edges:
    - {{source: fetch, target: one}}
    - {{source: one, target: two}}
    - {{source: two, target: three}}
    - {{source: three, target: four}}
    - {{source: four, target: five}}
    - {{source: five, target: finish}}
"
    )
}

/// Requests of a backend: path, `Authorization` and body.
type Requests = Arc<Mutex<Vec<(String, String, String)>>>;

/// Backend with the wire of pi-mono that repeats each key it receives.
async fn backend() -> (LocalServer, Requests) {
    let requests = Requests::default();
    let router = Router::new().fallback(answer).with_state(requests.clone());
    let server = LocalServer::start(router, 0).await.expect("a port");
    (server, requests)
}

async fn answer(
    State(requests): State<Requests>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let header = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    let key = header.unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let refuses = body.contains("\"userPrompt\":\"refuse\"") || body.contains("refuse");
    requests
        .lock()
        .push((uri.path().to_owned(), key.clone(), body));
    let (status, answer) = match uri.path() {
        "/sessions" => (StatusCode::OK, json!({"sessionId": "s-1"})),
        "/turns" if refuses => {
            let error = json!({"error": {"code": key, "message": format!("bad key {key}")}});
            (StatusCode::UNAUTHORIZED, error)
        }
        "/turns" => {
            let text = format!("your key is {key}");
            let answer = json!({
                "finalText": text, "reasoningText": text, "structuredOutput": {"key": key},
                "warnings": [text], "usage": {"inputTokens": 3, "outputTokens": 2},
            });
            (StatusCode::OK, answer)
        }
        _ => (
            StatusCode::NOT_FOUND,
            json!({"message": format!("no file for {key}")}),
        ),
    };
    (status, axum::Json(answer)).into_response()
}

async fn keyed_rig(backend: &str) -> Rig {
    let sections = format!(
        "flows: {{adapters: {{pi-mono: {{base_url: '{backend}', api_key: $PI_KEY}}}}, allowed_origins: ['{backend}']}}"
    );
    let variables = [
        ("PI_KEY", CONFIG_KEY),
        ("AGENTSFLOW_PI_MONO_API_KEY", ENVIRONMENT_KEY),
    ];
    Rig::configured(|base_url| config(base_url, &sections), &variables).await
}

fn require_no_key(what: &str, text: &str) {
    let keys = FLOW_KEYS
        .iter()
        .chain([&CONFIG_KEY, &ENVIRONMENT_KEY, &CANARY]);
    for key in keys {
        assert!(!text.contains(key), "{key} is in {what}: {text:.3000}");
    }
}

/// Returns what users can read of a run and of its flow.
async fn readable(rig: &Rig, thread: &str, run: &str) -> Vec<(String, HttpResponse)> {
    let mut answers = Vec::new();
    for path in [
        format!("/api/threads/{thread}"),
        format!("/api/threads/{thread}/state"),
        format!("/api/threads/{thread}/runs"),
        format!("/api/threads/{thread}/runs/{run}"),
        format!("/api/threads/{thread}/runs/{run}/events"),
        format!("/api/threads/{thread}/runs/{run}/nodes"),
        format!("/api/threads/{thread}/messages/page"),
        "/api/flows".to_owned(),
        "/api/flows/keys/graph".to_owned(),
        "/api/flows/keys/versions".to_owned(),
        "/api/flows/adapters".to_owned(),
        "/assistants/flow-keys".to_owned(),
        "/assistants/flow-keys/schemas".to_owned(),
        "/assistants/flow-keys/graph".to_owned(),
    ] {
        answers.push((path.clone(), rig.get(&path).await));
    }
    for (path, body) in [
        (
            format!("/api/threads/{thread}/history"),
            json!({"limit": 100}),
        ),
        ("/assistants/search".to_owned(), json!({})),
        ("/api/threads/search".to_owned(), json!({})),
    ] {
        answers.push((path.clone(), rig.post(&path, &body).await));
    }
    answers
}

#[tokio::test]
async fn keys_reach_their_backend_in_a_header_only() {
    let (server, requests) = backend().await;
    let address = format!("http://{}", server.address());
    let rig = keyed_rig(&address).await;
    let body = json!({"id": "keys", "content": flow(&address)});
    let stored = rig.post("/api/flows", &body).await;
    assert_eq!(stored.status.as_u16(), 201, "{}", stored.text);
    require_no_key("the response of a create", &stored.text);
    let secrets = stored.json()["warnings"]
        .to_string()
        .matches("secret_in_flow")
        .count();
    assert_eq!(secrets, FLOW_KEYS.len(), "{}", stored.text);

    let thread = rig.thread().await;
    let start = json!({
        "assistant_id": "flow-keys", "input": {"userPrompt": "then say done"},
        "stream_mode": ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug"],
        "stream_subgraphs": true,
    });
    let run = rig.run(&thread, &start).await;
    for frame in &run.frames {
        require_no_key("a stream", &String::from_utf8_lossy(&frame.raw));
    }
    let ended = rig.get_run(&thread, &run.run).await;
    assert_eq!(ended["status"], "success", "{ended}");
    let values = rig.values(&thread).await;
    assert!(
        values["outputs"]["two"].to_string().contains("your key is"),
        "{values}"
    );

    for (path, key, body) in requests.lock().iter() {
        require_no_key(&format!("the body of {path}"), body);
        let expected = if body.contains("\"agentId\":\"of-flow\"") {
            AGENT_KEY
        } else {
            CONFIG_KEY
        };
        if path == "/turns" {
            assert_eq!(*key, format!("Bearer {expected}"), "{body}");
        }
    }
    let turns = requests
        .lock()
        .iter()
        .filter(|(path, ..)| path == "/turns")
        .count();
    assert_eq!(turns, 4);

    for (path, answer) in readable(&rig, &thread, &run.run).await {
        require_no_key(&path, &answer.text);
    }
    let exported = rig
        .request(Method::GET, "/api/flows/keys/export")
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        exported.headers()["x-flow-secrets-removed"]
            .to_str()
            .expect("text")
            .split(' ')
            .count(),
        FLOW_KEYS.len()
    );
    let request = rig
        .request(Method::POST, "/api/flows/import?replace=true")
        .header("content-type", "application/zip")
        .body(exported.bytes().await.expect("an archive"));
    let imported = HttpResponse::of(request).await;
    assert_eq!(imported.status.as_u16(), 201, "{}", imported.text);
    require_no_key("an export", &rig.get("/api/flows/keys").await.text);
    require_no_key("the log", &rig.gateway.logs());
    require_no_key_in_files(rig.gateway.home());
}

/// Checks the files of an installation. Only the database has the text that a user stored.
fn require_no_key_in_files(home: &Path) {
    for (path, bytes) in files_below(home) {
        let text = String::from_utf8_lossy(&bytes);
        let mut keys = vec![CONFIG_KEY, ENVIRONMENT_KEY];
        if path != "config.yaml" {
            keys.push(CANARY);
            if !path.contains(".db") {
                keys.extend(FLOW_KEYS);
            }
        }
        for key in keys {
            assert!(!text.contains(key), "{key} is in {path}");
        }
    }
}

#[tokio::test]
async fn validation_names_the_place_of_a_key_and_not_the_key() {
    let rig = keyed_rig("http://127.0.0.1:9").await;
    let body = json!({"content": flow("http://127.0.0.1:9")});
    for query in ["", "?deep=true"] {
        let checked = rig
            .post(&format!("/api/flows/validate{query}"), &body)
            .await;
        let warnings = checked.ok()["warnings"].clone();
        let places: Vec<Value> = warnings
            .as_array()
            .expect("a list")
            .iter()
            .filter(|warning| warning["code"] == "secret_in_flow")
            .map(|warning| warning["path"].clone())
            .collect();
        assert_eq!(
            places,
            [
                "/runtime/adapterConfig/pi-mono/headers/Authorization",
                "/agents/agentDefs/1/modelProfile/apiKey",
                "/agents/agentDefs/1/adapterConfig/apiKey",
                "/agents/agentDefs/1/adapterConfig/nested/list/0/token",
                "/graph/nodes/0/config/authToken",
            ]
        );
        require_no_key("a validation", &checked.text);
    }
}
