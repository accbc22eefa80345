//! An agent that searches and reads the web, with fake providers on the loopback interface.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse};
use axum::routing::{get, post};
use axum::{Json, Router};
use deerflow_tests::local_server::LocalServer;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::rig::{CANARY, FinishedRun, Rig, list, message_text};

/// Requests that the providers received.
type RecordedRequests = Arc<Mutex<Vec<Value>>>;

/// Starts one server with Tavily's search, Jina's reader and a page.
async fn providers() -> (LocalServer, String, RecordedRequests) {
    async fn search(
        State(recorded): State<RecordedRequests>,
        Json(body): Json<Value>,
    ) -> Json<Value> {
        recorded.lock().push(body);
        Json(
            json!({"results": [{"title": "Deer", "url": "http://93.184.216.34/deer", "content": "They live in woods."}]}),
        )
    }
    async fn read(
        State(recorded): State<RecordedRequests>,
        Json(body): Json<Value>,
    ) -> Html<String> {
        recorded.lock().push(body);
        Html(page())
    }
    async fn refuse() -> impl IntoResponse {
        (
            StatusCode::UNAUTHORIZED,
            Json(json!({"error": format!("no such key: {CANARY}")})),
        )
    }
    let recorded = RecordedRequests::default();
    let routes = Router::new()
        .route("/search", post(search))
        .route("/", post(read))
        .route("/page", get(|| async { Html(page()) }))
        .route("/broken/search", post(refuse));
    let server = LocalServer::start(routes.with_state(recorded.clone()), 0)
        .await
        .expect("a server");
    let url = format!("http://{}", server.address());
    (server, url, recorded)
}

fn page() -> String {
    let text = "Deer live in woods, in parks and on hills, where they eat leaves. ".repeat(200);
    format!(
        "<html><head><title>Of deer</title></head><body><article><h2>Homes</h2><p>{text}</p></article></body></html>"
    )
}

fn entry(name: &str, kind: &str, more: &str) -> String {
    format!("{{name: {name}, group: web, use: '{kind}', {more}}}")
}

/// Returns the results of a run's tool calls.
fn results(run: &FinishedRun) -> Vec<Value> {
    list(&run.last_values()["messages"])
        .iter()
        .filter(|message| message["type"] == "tool")
        .cloned()
        .collect()
}

#[tokio::test]
async fn agent_searches_and_reads_a_result() {
    let (_server, url, recorded) = providers().await;
    let rig = Rig::with_tools(
        &[
            entry(
                "web_search",
                "deerflow.community.tavily.tools:web_search_tool",
                &format!("api_key: {CANARY}, max_results: 2, base_url: '{url}'"),
            ),
            entry(
                "web_fetch",
                "deerflow.community.jina_ai.tools:web_fetch_tool",
                &format!("timeout: 10, base_url: '{url}'"),
            ),
        ],
        "",
    )
    .await;
    let request = r#"[[tool:web_search {"query": "deer"}]] [[tool:web_fetch {"url": "http://93.184.216.34/deer"}]] then say They live in woods."#;
    let run = rig.run_prompt(request).await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    let results = results(&run);
    let found: Value = serde_json::from_str(&message_text(&results[0])).expect("json");
    assert_eq!(
        found,
        json!([{"title": "Deer", "url": "http://93.184.216.34/deer", "snippet": "They live in woods."}])
    );
    let read = message_text(&results[1]);
    assert!(
        read.starts_with("# Of deer\n\n")
            && read.contains("Homes")
            && read.contains("where they eat leaves"),
        "{read}"
    );
    assert!(
        read.chars().count() <= 4_096 && read.ends_with(" characters]"),
        "{}",
        read.len()
    );
    assert_eq!(
        *recorded.lock(),
        [
            json!({"query": "deer", "max_results": 2}),
            json!({"url": "http://93.184.216.34/deer"})
        ]
    );
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn page_is_read_without_provider_but_not_private_ones() {
    let (_server, url, _) = providers().await;
    let strict =
        Rig::with_tools(&[entry("web_fetch", "direct.web_fetch", "timeout: 10")], "").await;
    for address in [
        format!("{url}/page"),
        url.replace("127.0.0.1", "localhost"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
    ] {
        let run = strict
            .run_prompt(&format!(
                "[[tool:web_fetch {{\"url\": \"{address}\"}}]] then say done"
            ))
            .await;
        let result = &results(&run)[0];
        assert!(
            result["status"] == "error" && message_text(result).contains("private or reserved"),
            "{address}: {result}"
        );
    }
    let open = Rig::with_tools(
        &[entry(
            "web_fetch",
            "direct.web_fetch",
            "allowed_hosts: ['127.0.0.1']",
        )],
        "",
    )
    .await;
    let run = open
        .run_prompt(&format!(
            "[[tool:web_fetch {{\"url\": \"{url}/page\"}}]] then say done"
        ))
        .await;
    assert!(
        message_text(&results(&run)[0]).starts_with("# Of deer\n\n"),
        "{:?}",
        results(&run)
    );
}

#[tokio::test]
async fn provider_refusal_is_reported_to_model_without_key() {
    let (_server, url, _) = providers().await;
    let settings = format!("api_key: {CANARY}, base_url: '{url}/broken'");
    let rig = Rig::with_tools(&[entry("web_search", "tavily.web_search", &settings)], "").await;
    let run = rig
        .run_prompt(r#"[[tool:web_search {"query": "deer"}]] then say done"#)
        .await;
    assert_eq!(
        rig.get_run(&run.thread, &run.run).await["status"],
        "success"
    );
    let result = &results(&run)[0];
    assert_eq!(
        (&result["status"], message_text(result)),
        (
            &json!("error"),
            "Error: Tavily answered 401 Unauthorized: no such key: ***".to_owned()
        )
    );
    assert!(!rig.gateway.logs().contains(CANARY));
}

#[tokio::test]
async fn all_tools_of_deerflow_example_are_available() {
    let tools = [
        entry(
            "web_search",
            "deerflow.community.ddg_search.tools:web_search_tool",
            "max_results: 5",
        ),
        entry(
            "web_fetch",
            "deerflow.community.jina_ai.tools:web_fetch_tool",
            "timeout: 10",
        ),
        entry(
            "image_search",
            "deerflow.community.image_search.tools:image_search_tool",
            "max_results: 5",
        ),
        entry(
            "glob",
            "deerflow.sandbox.tools:glob_tool",
            "max_results: 200",
        ),
        entry(
            "grep",
            "deerflow.sandbox.tools:grep_tool",
            "max_results: 100",
        ),
        // A tool without its key is omitted, and the start succeeds.
        entry(
            "web_search",
            "deerflow.community.exa.tools:web_search_tool",
            "api_key: $NO_SUCH_VARIABLE",
        ),
    ];
    let rig = Rig::with_tools(&tools, "").await;
    rig.run_prompt("then say hello").await;
    let requests = rig.model.requests();
    let offered = &requests
        .iter()
        .find(|request| !request.tools.is_empty())
        .expect("a request with tools")
        .tools;
    for tool in [
        "web_search",
        "web_fetch",
        "image_search",
        "glob",
        "grep",
        "read_file",
        "list_uploaded_files",
        "present_files",
    ] {
        assert!(
            offered.iter().any(|name| name == tool),
            "{tool}: {offered:?}"
        );
    }
}
