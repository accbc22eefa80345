//! Facts that the platform reports about threads, runs, checkpoints and the server.

use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use crate::keys::User;
use crate::support::{Gateway, saying};

/// Runs the agent with `text` and returns the id of the run.
async fn run(gateway: &Gateway, thread: &str, text: &str) -> String {
    let path = format!("/threads/{thread}/runs");
    let started = gateway.post(&path, saying(text)).await.json();
    let run = started["run_id"].as_str().expect("an id").to_owned();
    gateway.wait_for_status(thread, &run).await;
    run
}

async fn get(gateway: &Gateway, path: String) -> Value {
    let found = gateway.get(&path).await;
    assert_eq!(found.code(), 200, "{path}: {}", found.text());
    found.json()
}

#[tokio::test]
async fn storage_of_a_thread_is_counted() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/storage");
    let empty = get(&gateway, path.clone()).await;
    assert_eq!(
        empty,
        json!({
            "thread_id": thread, "total_bytes": 0, "checkpoints": { "count": 0, "bytes": 0 },
            "channel_values": { "count": 0, "bytes": 0, "by_channel": {} },
            "pending_writes": { "count": 0, "bytes": 0 },
        })
    );
    run(&gateway, &thread, "ask red blue").await;
    let stored = get(&gateway, path).await;
    let number = |at: &str| stored.pointer(at).and_then(Value::as_u64).expect(at);
    assert_eq!(number("/channel_values/by_channel/messages/versions"), 2);
    assert!(number("/checkpoints/count") > 0);
    assert!(number("/pending_writes/count") >= 2);
    let parts = ["checkpoints", "channel_values", "pending_writes"];
    let sum: u64 = parts
        .iter()
        .map(|part| number(&format!("/{part}/bytes")))
        .sum();
    assert_eq!(number("/total_bytes"), sum);
}

#[tokio::test]
async fn storage_needs_an_own_thread_of_the_root() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let created = ann.send("POST", "/threads", json!({})).await.json();
    let thread = created["thread_id"].as_str().expect("an id");
    let path = format!("/threads/{thread}/storage");
    let code = async |user: &User<'_>, path: &str| user.send("GET", path, Value::Null).await.code();
    assert_eq!(code(&ann, &path).await, 200);
    assert_eq!(code(&bob, &path).await, 404);
    assert_eq!(code(&ann, &format!("/api{path}")).await, 404);
    assert_eq!(code(&ann, "/threads/no-uuid/storage").await, 422);
}

#[tokio::test]
async fn checkpoints_of_runs_name_attempt_host_and_user() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    run(&gateway, &thread, "say hi").await;
    let metadata = |state: Value| state["metadata"].clone();
    let newest = metadata(get(&gateway, format!("/threads/{thread}/state")).await);
    assert_eq!(newest["run_attempt"], 1, "{newest}");
    assert_eq!(newest["langgraph_host"], "self-hosted");
    assert_eq!(newest["user_id"], newest["langgraph_auth_user_id"]);
    assert!(newest["user_id"].is_string());
    let deerflow = metadata(get(&gateway, format!("/api/threads/{thread}/state")).await);
    let path = format!("/api/threads/{thread}/history");
    let history = gateway.post(&path, json!({})).await.json();
    for metadata in [deerflow, history[0]["metadata"].clone()] {
        assert!(metadata["step"].is_number(), "{metadata}");
        assert!(metadata.get("run_attempt").is_none(), "{metadata}");
    }
    let update = json!({ "values": { "title": "T" } });
    let path = format!("/threads/{thread}/state");
    assert_eq!(gateway.post(&path, update).await.code(), 200);
    let updated = metadata(get(&gateway, path).await);
    assert_eq!(updated["source"], "update");
    assert!(updated.get("run_attempt").is_none(), "{updated}");
}

#[tokio::test]
async fn options_of_agents_contain_the_ids_of_the_run() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let forged = json!({ "configurable": { "run_id": "forged", "mine": 1 } });
    let mut body = saying("options");
    body["config"] = forged;
    let started = gateway.post(&format!("/threads/{thread}/runs"), body).await;
    let started = started.json();
    let run = started["run_id"].as_str().expect("an id");
    gateway.wait_for_status(&thread, run).await;
    let state = get(&gateway, format!("/threads/{thread}/state")).await;
    let shown = state["values"]["messages"][1]["content"]
        .as_str()
        .expect("a text");
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    let expected = json!({
        "mine": 1, "thread_id": thread, "run_id": run,
        "assistant_id": started["assistant_id"], "graph_id": "lead_agent",
    });
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn runs_of_the_platform_have_no_tracing_session() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let run = run(&gateway, &thread, "say hi").await;
    let found = get(&gateway, format!("/threads/{thread}/runs/{run}")).await;
    assert_eq!(found.get("langsmith_session_name"), Some(&Value::Null));
    let found = get(&gateway, format!("/api/threads/{thread}/runs/{run}")).await;
    assert_eq!(found.get("langsmith_session_name"), None);
}

#[tokio::test]
async fn metrics_as_json_report_requests_workers_and_queue() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await;
    let metrics = get(&gateway, "/metrics?format=json".to_owned()).await;
    assert_eq!(metrics["api"]["http_requests_total"], json!([]));
    let queue = &metrics["queue"];
    let unfinished = [&queue["n_pending"], &queue["n_running"]].map(Value::as_u64);
    assert!(unfinished.contains(&Some(1)), "{metrics}");
    let workers = json!({ "max": null, "active": 1, "available": null });
    assert_eq!(metrics["workers"], workers);
}

#[tokio::test]
async fn disconnect_from_a_join_cancels_if_requested() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let started = gateway
        .post(&format!("/threads/{thread}/runs"), saying("slow"))
        .await;
    let run = started.json()["run_id"].as_str().expect("an id").to_owned();
    let path = format!("/threads/{thread}/runs/{run}/join");
    for (method, query) in [("GET", ""), ("HEAD", "?cancel_on_disconnect=true")] {
        let join = gateway
            .open(method, &format!("{path}{query}"), "", &[])
            .await;
        let mut body = join.into_body().into_data_stream();
        if method == "GET" {
            assert!(body.next().now_or_never().is_none());
        }
        drop(body);
        let found = get(&gateway, format!("/threads/{thread}/runs/{run}")).await;
        assert_eq!(found["status"], "running", "{method}");
    }
    let invalid = format!("{path}?cancel_on_disconnect=perhaps");
    assert_eq!(gateway.get(&invalid).await.code(), 422);
    let path = format!("{path}?cancel_on_disconnect=true");
    let join = gateway.open("GET", &path, "", &[]).await;
    let mut body = join.into_body().into_data_stream();
    assert!(body.next().now_or_never().is_none());
    drop(body);
    let ended = gateway.wait_for_status(&thread, &run).await;
    assert_eq!(ended["status"], "interrupted");
}
