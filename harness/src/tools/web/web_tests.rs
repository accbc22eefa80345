//! Tests of each provider against a fake server on the loopback: the requests it receives, and the
//! text that a model reads.

#[path = "web_address_tests.rs"]
mod address;
#[path = "web_failure_tests.rs"]
mod failure;
#[path = "web_read_tests.rs"]
mod read;
#[path = "web_search_tests.rs"]
mod search;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::config::ToolConfig;
use crate::net::{Lookup, SystemLookup};
use crate::runtime::tasks::{TaskKind, Tasks};
use crate::testkit::tool_context;
use crate::tools::Effect;

/// Response of a fake server.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
    silent: bool,
}

impl Reply {
    pub(super) fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = if content_type.is_empty() {
            String::new()
        } else {
            format!("content-type: {content_type}\r\n")
        };
        Self {
            status,
            headers,
            body: body.into(),
            silent: false,
        }
    }

    fn json(body: Value) -> Self {
        Self::new(200, "application/json", body.to_string())
    }

    pub(super) fn redirect(to: &str) -> Self {
        Self {
            headers: format!("location: {to}\r\n"),
            ..Self::new(302, "", "")
        }
    }

    pub(super) fn unresponsive() -> Self {
        Self {
            silent: true,
            ..Self::new(200, "", "")
        }
    }
}

/// Request as received.
#[derive(Debug, Clone)]
pub(super) struct RecordedRequest {
    /// Request line and headers.
    pub(super) head: String,
    pub(super) body: String,
}

impl RecordedRequest {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn has(&self, header: &str) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains(&header.to_ascii_lowercase())
    }
}

/// Server that returns its responses in order and repeats the last one.
#[derive(Debug)]
pub(super) struct Fake {
    port: u16,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    _tasks: Tasks,
}

impl Fake {
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let replies: Vec<Reply> = replies.into_iter().collect();
        let (requests, tasks) = (Arc::<Mutex<Vec<RecordedRequest>>>::default(), Tasks::new());
        let recorded = requests.clone();
        tasks.spawn(TaskKind::Service, "fake provider", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = request(&mut socket).await else { continue };
                let at = {
                    let mut recorded = recorded.lock();
                    recorded.push(request);
                    (recorded.len() - 1).min(replies.len() - 1)
                };
                let Reply { status, headers, body, silent } = &replies[at];
                if *silent {
                    let _ = socket.read_u8().await;
                    continue;
                }
                let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
                let _ = socket.write_all(head.as_bytes()).await;
                let _ = socket.write_all(body).await;
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url_at(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().clone()
    }
}

async fn request(socket: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .to_ascii_lowercase()
            .split_once("content-length: ")
            .and_then(|(_, rest)| {
                rest.split("\r\n")
                    .next()
                    .and_then(|length| length.parse::<usize>().ok())
            });
        if body.len() >= length.unwrap_or(0) {
            return Some(RecordedRequest {
                head: head.to_owned(),
                body: body.to_owned(),
            });
        }
    }
}

fn factory() -> WebToolFactory {
    let retry_budget = RetryBudget {
        tries: 3,
        wait: Duration::ZERO,
        longest: Duration::from_secs(5),
    };
    let variables = [(
        "TAVILY_API_KEY".to_owned(),
        "from-the-environment".to_owned(),
    )];
    WebToolFactory::with(
        variables.into_iter().collect(),
        Arc::new(SystemLookup::default()),
        retry_budget,
    )
    .unwrap()
}

fn entry(kind: &str, more: Value) -> ToolConfig {
    let mut entry = json!({ "name": "x", "group": "web", "use": kind });
    entry
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    serde_json::from_value(entry).unwrap()
}

/// Calls a tool and returns the text that a model reads.
async fn call(kind: &str, settings: Value, args: Value) -> Result<String, String> {
    let tool = factory().tool(&entry(kind, settings)).unwrap().unwrap();
    let args = args.as_object().unwrap().clone();
    assert_eq!(tool.effect(&args), Effect::Pure);
    tool.call(args, &tool_context())
        .await
        .map(|output| output.content.text())
        .map_err(|error| error.to_string())
}

/// Same as [`call`] with a fake provider; also returns the received requests.
async fn ask(
    kind: &str,
    reply: Reply,
    settings: Value,
    args: Value,
) -> (Result<String, String>, Vec<RecordedRequest>) {
    let fake = Fake::start([reply]).await;
    let mut all = json!({ "base_url": fake.url_at("127.0.0.1", ""), "api_key": "sk-canary", "token": "sk-canary" });
    all.as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    let read = call(kind, all, args).await;
    (read, fake.requests())
}

fn parsed(read: Result<String, String>) -> Value {
    serde_json::from_str(&read.unwrap()).unwrap()
}

const PUBLIC_URL: &str = "http://93.184.216.34/deer";

#[test]
fn invalid_entries_state_reason() {
    let invalid = |kind: &str, settings: Value| {
        factory()
            .tool(&entry(kind, settings))
            .unwrap()
            .unwrap_err()
            .why
    };
    assert!(invalid("exa.web_search", json!({})).contains("EXA_API_KEY"));
    assert!(invalid("firecrawl.web_search", json!({})).contains("FIRECRAWL_API_KEY"));
    assert!(invalid("tavily.web_search", json!({"max_results": 0})).contains("max_results"));
    assert!(invalid("tavily.web_search", json!({"max_results": "many"})).contains("max_results"));
    assert!(invalid("tavily.web_search", json!({"timeout": -1})).contains("timeout"));
    assert!(invalid("tavily.web_search", json!({"base_url": "ftp://x"})).contains("base_url"));
    assert!(
        invalid("duckduckgo.web_search", json!({"safesearch": "maybe"})).contains("safesearch")
    );
    assert!(invalid("direct.web_fetch", json!({"allowed_hosts": [5]})).contains("allowed_hosts"));
    assert!(
        invalid(
            "direct.web_fetch",
            json!({"allow_private_addresses": "yes"})
        )
        .contains("allow_private_addresses")
    );
    assert!(invalid("crawl4ai.web_fetch", json!({"filter": "all"})).contains("filter"));
    assert!(invalid("jina.web_search", json!({})).contains("no such tool"));
    assert!(
        invalid(
            "jina.web_fetch",
            json!({"__unresolved": [{"key": "proxy", "variable": "PROXY"}]})
        )
        .contains("PROXY")
    );
    assert!(factory().tool(&entry("sandbox.ls", json!({}))).is_none());
    // Tavily's key comes from the environment, and SearXNG needs none.
    assert!(
        factory()
            .tool(&entry("tavily.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        factory()
            .tool(&entry("searxng.web_search", json!({})))
            .unwrap()
            .is_ok()
    );
    assert!(
        factory()
            .tool(&entry(
                "jina.web_fetch",
                json!({"proxy": "http://127.0.0.1:9", "trust_env": true})
            ))
            .unwrap()
            .is_ok()
    );
}

#[test]
fn arguments_have_expected_names_and_defaults() {
    let schema = |kind: &str| {
        factory()
            .tool(&entry(kind, json!({"api_key": "k"})))
            .unwrap()
            .unwrap()
            .schema()
            .clone()
    };
    let fields = |kind: &str| {
        schema(kind).parameters["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (
            schema("tavily.web_search").name.as_str(),
            fields("tavily.web_search")
        ),
        ("web_search", vec!["query".to_owned()])
    );
    assert_eq!(fields("serper.web_search"), ["query", "max_results"]);
    assert_eq!(fields("direct.web_fetch"), ["url"]);
    assert_eq!(
        fields("duckduckgo.image_search"),
        ["query", "max_results", "size", "type_image", "layout"]
    );
    assert_eq!(fields("brave.image_search"), ["query", "max_results"]);
    let parameters = schema("duckduckgo.web_search").parameters;
    assert_eq!(
        (
            &parameters["properties"]["max_results"]["default"],
            &parameters["required"]
        ),
        (&json!(5), &json!(["query"]))
    );
    assert_eq!(parameters["properties"]["max_results"]["type"], "integer");
}
