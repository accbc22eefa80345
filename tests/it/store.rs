//! Item store: semantic search with a real embeddings server, also after a restart.

use axum::{Json, Router, routing::post};
use deerflow_tests::local_server::LocalServer;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::Rig;

/// Starts a server whose embeddings count the letters a, b and c.
async fn letters() -> LocalServer {
    let embed = async |Json(body): Json<Value>| {
        let texts = body["input"].as_array().cloned().unwrap_or_default();
        let count = |text: &Value, letter| {
            text.as_str()
                .unwrap_or_default()
                .chars()
                .filter(|found| *found == letter)
                .count()
        };
        let rows = texts.iter().enumerate().map(|(index, text)| {
            let vector = ['a', 'b', 'c'].map(|letter| count(text, letter));
            json!({ "index": index, "embedding": vector })
        });
        Json(json!({ "object": "list", "data": rows.collect::<Vec<_>>() }))
    };
    LocalServer::start(Router::new().route("/v1/embeddings", post(embed)), 0)
        .await
        .expect("embeddings")
}

async fn found(rig: &Rig, search: Value) -> Vec<(String, Value)> {
    let found = rig.post("/store/items/search", &search).await.ok();
    let items = found["items"].as_array().expect("items").iter();
    items
        .map(|item| {
            (
                item["key"].as_str().expect("a key").to_owned(),
                item["score"].clone(),
            )
        })
        .collect()
}

#[tokio::test]
async fn items_are_found_by_meaning_before_and_after_restart() {
    let server = letters().await;
    let embed = format!(
        "{{model: letters, base_url: 'http://{}/v1'}}",
        server.address()
    );
    let mut rig = Rig::with(&format!(
        "store:\n  index:\n    dims: 3\n    fields: [text]\n    embed: {embed}\n"
    ))
    .await;
    for (key, text) in [("alpha", "aaaa"), ("beta", "bb"), ("mixed", "aab")] {
        let item = json!({ "namespace": ["notes"], "key": key, "value": { "text": text } });
        let put = rig
            .request(Method::PUT, "/store/items")
            .json(&item)
            .send()
            .await
            .expect("answer");
        assert_eq!(put.status().as_u16(), 204);
    }
    let search = json!({ "namespace_prefix": ["notes"], "query": "a", "limit": 2 });
    let before = found(&rig, search.clone()).await;
    assert_eq!(before[0], ("alpha".to_owned(), json!(1.0)));
    assert_eq!((before.len(), before[1].0.as_str()), (2, "mixed"));
    rig.gateway.restart().await.expect("again");
    assert_eq!(found(&rig, search).await, before);

    drop(server);
    let item = json!({ "namespace": ["notes"], "key": "late", "value": { "text": "c" } });
    let put = rig
        .request(Method::PUT, "/store/items")
        .json(&item)
        .send()
        .await
        .expect("answer");
    assert_eq!(put.status().as_u16(), 503);
    assert_eq!(
        found(&rig, json!({ "namespace_prefix": ["notes"] }))
            .await
            .len(),
        3
    );
}

#[tokio::test]
async fn run_metrics_are_exposed_to_prometheus() {
    let rig = Rig::start().await;
    rig.run_prompt("say hello").await;
    let figures = rig.get("/metrics").await.text;
    for line in [
        "deerflow_runs_total{status=\"success\"} 1",
        "deerflow_runs_active 0",
        "deerflow_streams_active 0",
        "deerflow_first_token_seconds_count 1",
        "deerflow_run_seconds_count{status=\"success\"} 1",
        "deerflow_http_requests_total{method=\"POST\",route=\"/api/threads/{thread_id}/runs/stream\",status=\"200\"} 1",
    ] {
        assert!(
            figures.lines().any(|found| found == line),
            "{line} is not in\n{figures}"
        );
    }
    for figure in [
        "deerflow_write_queue_depth ",
        "deerflow_write_queue_seconds_count ",
    ] {
        assert!(
            figures.lines().any(|found| found.starts_with(figure)),
            "{figure} is not in\n{figures}"
        );
    }
    let queue = rig.get("/metrics?format=json").await.ok();
    assert_eq!(
        (&queue["queue"]["n_pending"], &queue["queue"]["n_running"]),
        (&json!(0), &json!(0))
    );
}
