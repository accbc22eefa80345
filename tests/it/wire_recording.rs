//! Compares what clients and operators depend on with recordings: responses, the OpenAPI documents, the database schema
//! and metric names. A change of these files in a commit is a change of the wire.
//!
//! `DEERFLOW_RECORD=1 cargo test --workspace --test it wire_recording` writes the recordings anew, with the binary that
//! `DEERFLOW_BIN` names or the one of this build.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use deerflow_tests::gateway::{AUTH_DISABLED, GatewayOptions, GatewayProcess, deerflow_binary};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::until;

const CONFIG: &str = "config_version: 34\n\
    models: [{name: scripted, use: scripted, model: scripted}]\n\
    agents_api: {enabled: true}\n";

const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/recorded");

/// Requests in order: method, path and body. `{thread}` and `{run}` stand for the newest ids in earlier responses.
fn script() -> Vec<(Method, &'static str, Option<Value>)> {
    let (get, post) = (
        |path| (Method::GET, path, None),
        |path, body| (Method::POST, path, Some(body)),
    );
    let question =
        |text: &str| json!({"messages": [{"role": "user", "content": text, "id": "question-1"}]});
    vec![
        get("/ok"),
        get("/info"),
        post("/threads", json!({"metadata": {"team": "a"}})),
        get("/threads/{thread}"),
        post(
            "/threads/{thread}/runs/wait",
            json!({"assistant_id": "lead_agent", "input": question("Hello")}),
        ),
        post(
            "/threads/{thread}/runs/stream",
            json!({
            "assistant_id": "lead_agent", "stream_mode": ["values", "updates"], "metadata": {"k": 1},
            "input": {"messages": [{"type": "human", "content":
                "[[tool:write_file {\"description\": \"try\", \"path\": \"/mnt/user-data/outputs/a.md\", \"content\": \"hi\"}]] then say done"}]}}),
        ),
        get("/threads/{thread}/runs"),
        get("/threads/{thread}/runs/{run}"),
        get("/threads/{thread}/runs/{run}/join"),
        get("/threads/{thread}/state"),
        post("/threads/{thread}/history", json!({"limit": 2})),
        post(
            "/threads/{thread}/state",
            json!({"values": {"title": "Changed"}, "as_node": "model"}),
        ),
        post(
            "/threads/search",
            json!({"metadata": {"team": "a"}, "limit": 5}),
        ),
        post("/threads/count", json!({"metadata": {"team": "a"}})),
        (
            Method::PATCH,
            "/threads/{thread}",
            Some(json!({"metadata": {"team": "b"}})),
        ),
        post("/threads/{thread}/copy", json!({})),
        post("/threads/{thread}/runs/{run}/cancel", json!({})),
        post(
            "/threads/{thread}/runs/crons",
            json!({"assistant_id": "lead_agent", "schedule": "0 0 1 1 *", "input": {}}),
        ),
        post("/runs/crons/search", json!({})),
        post("/assistants/search", json!({})),
        post(
            "/assistants",
            json!({"graph_id": "lead_agent", "name": "Mine", "assistant_id": "6f6b0d0e-0000-4000-8000-000000000001"}),
        ),
        get("/assistants/6f6b0d0e-0000-4000-8000-000000000001/schemas"),
        get("/assistants/6f6b0d0e-0000-4000-8000-000000000001/graph"),
        (
            Method::PUT,
            "/store/items",
            Some(json!({"namespace": ["a", "b"], "key": "k", "value": {"v": 1}})),
        ),
        get("/store/items?namespace=a.b&key=k"),
        post("/store/items/search", json!({"namespace_prefix": ["a"]})),
        post("/store/namespaces", json!({})),
        // The other dialect.
        get("/api/models"),
        get("/api/skills"),
        get("/api/memory"),
        get("/api/memory/config"),
        get("/api/mcp/config"),
        get("/api/agents"),
        get("/api/threads/{thread}/runs"),
        get("/api/threads/{thread}/messages"),
        get("/api/threads/{thread}/token-usage"),
        get("/api/threads/{thread}/uploads/list"),
        post("/api/threads/search", json!({})),
        post(
            "/api/threads/{thread}/runs/wait",
            json!({"assistant_id": "lead_agent", "input": question("Again")}),
        ),
        // Errors of both.
        get("/threads/not-a-uuid"),
        get("/threads/00000000-0000-4000-8000-000000000000"),
        get("/api/threads/00000000-0000-4000-8000-000000000000"),
        post(
            "/threads/{thread}/runs",
            json!({"assistant_id": "no-such-assistant", "input": {}}),
        ),
        post("/api/threads/{thread}/runs", json!({"assistant_id": 5})),
        post(
            "/threads/{thread}/runs",
            json!({"assistant_id": "lead_agent", "input": {"messages": [{"content": 5}]}}),
        ),
        post(
            "/threads/{thread}/runs",
            json!({"assistant_id": "lead_agent", "stream_mode": "everything"}),
        ),
        post(
            "/api/threads/{thread}/runs",
            json!({"assistant_id": "lead_agent", "input": {"messages": [{"type": "nobody", "content": "x"}]}}),
        ),
        post("/threads/{thread}/history", json!({"limit": -1})),
        post("/assistants", json!({"graph_id": "nothing"})),
        get("/threads/{thread}/runs/00000000-0000-4000-8000-000000000000"),
        get("/no/such/route"),
        (Method::PUT, "/threads", None),
        (Method::DELETE, "/threads/{thread}", None),
    ]
}

async fn gateway() -> GatewayProcess {
    let binary = match variable("DEERFLOW_BIN") {
        Some(path) => PathBuf::from(path),
        None => deerflow_binary().expect("binary"),
    };
    let mut options = GatewayOptions::new(binary, CONFIG);
    options
        .env
        .push((AUTH_DISABLED.0.to_owned(), AUTH_DISABLED.1.to_owned()));
    GatewayProcess::launch(options).await.expect("gateway")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the switch of a recording is the environment of the test"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Compares `actual` with the recording of this name, or writes it when a recording was requested.
#[track_caller]
fn compare(name: &str, actual: &str) {
    let path = Path::new(RECORDINGS).join(name);
    if variable("DEERFLOW_RECORD").is_some() {
        std::fs::write(&path, actual).expect("recording");
        return;
    }
    let recorded = std::fs::read_to_string(&path).expect("recording");
    let differing = recorded
        .lines()
        .zip(actual.lines())
        .enumerate()
        .find(|(_, (old, new))| old != new);
    if let Some((line, (old, new))) = differing {
        panic!("{name}:{}\nrecorded: {old}\nactual:   {new}", line + 1);
    }
    assert_eq!(
        recorded.lines().count(),
        actual.lines().count(),
        "{name}: number of lines"
    );
}

/// Replaces ids, times and durations by names that are equal in every recording.
#[derive(Default)]
struct Normalizer {
    ids: Vec<String>,
}

impl Normalizer {
    fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(length) = id_length(rest, out.ends_with("call_")) {
                let id = rest[..length].replace('-', "");
                let at = self.ids.iter().position(|known| *known == id);
                let at = at.unwrap_or_else(|| {
                    self.ids.push(id);
                    self.ids.len() - 1
                });
                out.push_str(&format!("<id-{at}>"));
                rest = &rest[length..];
            } else if rest.starts_with(|sign: char| sign.is_ascii_digit())
                && ["\"latency_ms\":", "\"turn_duration\":"]
                    .iter()
                    .any(|key| out.ends_with(key))
            {
                out.push_str("<duration>");
                let digits = rest.find(|sign: char| !sign.is_ascii_digit());
                rest = &rest[digits.unwrap_or(rest.len())..];
            } else if let Some(length) = time_length(rest) {
                out.push_str("<time>");
                rest = &rest[length..];
            } else {
                let next = rest.chars().next().expect("not empty");
                // A whole word or number at a time, so that an id is not found inside of one.
                let length = if next.is_ascii_alphanumeric() {
                    rest.find(|sign: char| !sign.is_ascii_alphanumeric())
                        .unwrap_or(rest.len())
                } else {
                    next.len_utf8()
                };
                out.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
        out
    }
}

/// The length of a UUID, with or without hyphens, or of the id of a scripted call, at the beginning of `text`.
fn id_length(text: &str, is_call: bool) -> Option<usize> {
    let digits = |from: usize, count: usize| {
        text.as_bytes()
            .get(from..from + count)
            .is_some_and(|part| part.iter().all(u8::is_ascii_hexdigit))
    };
    let ends = |at: usize| {
        !text
            .as_bytes()
            .get(at)
            .is_some_and(u8::is_ascii_alphanumeric)
    };
    let hyphens = [8, 13, 18, 23]
        .iter()
        .all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    if hyphens
        && digits(0, 8)
        && digits(9, 4)
        && digits(14, 4)
        && digits(19, 4)
        && digits(24, 12)
        && ends(36)
    {
        return Some(36);
    }
    let is_call_id = is_call && digits(0, 8) && text.as_bytes().get(8) == Some(&b'_');
    is_call_id
        .then_some(8)
        .or_else(|| (digits(0, 32) && ends(32)).then_some(32))
}

/// The length of an RFC 3339 time at the beginning of `text`.
fn time_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_time = bytes.len() >= 19
        && bytes[..4].iter().all(u8::is_ascii_digit)
        && bytes[4] == b'-'
        && matches!(bytes[10], b'T' | b' ')
        && bytes[13] == b':';
    is_time.then(|| {
        let end = text[19..]
            .find(|sign: char| !(sign.is_ascii_digit() || matches!(sign, '.' | '+' | ':' | 'Z')));
        19 + end.unwrap_or(text.len() - 19)
    })
}

/// The value behind `key` in a response, if it is a JSON object with a text there.
fn id_in(body: &str, key: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    body.get(key)?.as_str().map(str::to_owned)
}

#[tokio::test]
async fn responses_equal_recording() {
    let gateway = gateway().await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("client");
    let mut normalizer = Normalizer::default();
    let (mut thread, mut run) = (String::new(), String::new());
    let mut recorded = String::new();
    for (method, path, body) in script() {
        let url = path.replace("{thread}", &thread).replace("{run}", &run);
        let mut request = client.request(method.clone(), format!("{}{url}", gateway.base_url()));
        if let Some(body) = &body {
            request = request.json(body);
        }
        let response = request.send().await.expect("response");
        let status = response.status();
        let content_type = response.headers().get("content-type").cloned();
        if let Some(location) = response.headers().get("content-location")
            && let Some((_, id)) = location.to_str().expect("text").rsplit_once("/runs/")
        {
            id.clone_into(&mut run);
        }
        let text = response.text().await.expect("body");
        if path == "/threads" && status.is_success() {
            thread = id_in(&text, "thread_id").expect("thread id");
        }
        let content_type = content_type
            .as_ref()
            .map_or("none", |value| value.to_str().expect("text"));
        recorded.push_str(&format!(
            "> {method} {path}\n< {status} {content_type}\n{}\n\n",
            normalizer.text(&text)
        ));
        if method == Method::POST && path.ends_with("/runs/wait") {
            // A title is written after the run's end.
            let state = format!("{}/threads/{thread}/state", gateway.base_url());
            until("title of the thread", async || {
                let text = client.get(&state).send().await.ok()?.text().await.ok()?;
                text.contains("\"title\"").then_some(())
            })
            .await;
        }
    }
    compare("responses.txt", &recorded);
}

/// Removes the texts that may be worded anew.
fn without_prose(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_schema_map = fields.values().all(Value::is_object);
            if !is_schema_map {
                for key in ["summary", "description", "title"] {
                    if fields.get(key).is_some_and(Value::is_string) {
                        fields.remove(key);
                    }
                }
            }
            fields.values_mut().for_each(without_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(without_prose),
        _ => {}
    }
}

#[tokio::test]
async fn openapi_paths_and_fields_equal_recording() {
    let gateway = gateway().await;
    let text = reqwest::get(format!("{}/api/openapi.json", gateway.base_url()))
        .await
        .expect("response")
        .text()
        .await;
    let mut document: Value = serde_json::from_str(&text.expect("body")).expect("JSON");
    without_prose(&mut document);
    document.sort_all_objects();
    let mut lines = String::new();
    for part in ["/paths", "/components/schemas"] {
        let entries = document
            .pointer(part)
            .and_then(Value::as_object)
            .expect("an object");
        for (name, entry) in entries {
            lines.push_str(&format!("{name} {entry}\n"));
        }
    }
    compare("openapi.txt", &lines);
}

#[tokio::test]
async fn metric_names_equal_recording() {
    let gateway = gateway().await;
    let text = reqwest::get(format!("{}/metrics", gateway.base_url()))
        .await
        .expect("response")
        .text()
        .await;
    let names: BTreeSet<String> = text
        .expect("body")
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        // Debug builds and measurements only.
        .filter(|line| !line.starts_with("deerflow_allocations_total"))
        .map(str::to_owned)
        .collect();
    compare(
        "metrics.txt",
        &format!("{}\n", names.into_iter().collect::<Vec<_>>().join("\n")),
    );
}
