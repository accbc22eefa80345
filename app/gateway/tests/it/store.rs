//! The item store over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use deerflow_domain::items::{
    EmbeddingIndex, FieldPath, InMemoryItemStore, ItemService, TtlPolicy,
};
use deerflow_gateway::GatewayState;
use harness::clock::SystemClock;
use harness::models::{Embedder, ModelError};
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse};

async fn put(gateway: &Gateway, body: Value) -> HttpResponse {
    gateway.send("PUT", "/store/items", Some(body)).await
}

async fn keys(gateway: &Gateway, body: Value) -> Vec<String> {
    let found = gateway.post("/store/items/search", body).await.json();
    found["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| item["key"].as_str().expect("a key").to_owned())
        .collect()
}

#[tokio::test]
async fn item_is_stored_found_and_deleted() {
    let gateway = Gateway::new();
    let response = put(
        &gateway,
        json!({ "namespace": ["a", "b"], "key": "k", "value": { "x": 1, "n": null } }),
    )
    .await;
    assert_eq!((response.code(), response.text()), (204, ""));
    let item = gateway
        .get("/store/items?namespace=a.b&key=k&refresh_ttl=false")
        .await
        .json();
    let fields: Vec<&String> = item.as_object().expect("an item").keys().collect();
    assert_eq!(
        fields,
        ["namespace", "key", "value", "created_at", "updated_at"]
    );
    assert_eq!(
        (&item["namespace"], &item["value"]),
        (&json!(["a", "b"]), &json!({ "x": 1, "n": null }))
    );
    put(&gateway, json!({ "namespace": ["a"], "key": "top", "value": { "x": 2 }, "index": null, "ttl": null })).await;
    let hits = gateway
        .post(
            "/store/items/search",
            json!({ "namespace_prefix": ["a"], "query": "anything" }),
        )
        .await
        .json();
    assert!(
        hits["items"]
            .as_array()
            .expect("items")
            .iter()
            .all(|hit| hit.get("score") == Some(&Value::Null)),
        "{hits}"
    );
    assert_eq!(
        keys(
            &gateway,
            json!({ "namespace_prefix": ["a"], "filter": { "x": { "$gt": 1 } } })
        )
        .await,
        ["top"]
    );
    assert_eq!(
        keys(
            &gateway,
            json!({ "namespace_prefix": null, "filter": null, "limit": 1, "offset": 1 })
        )
        .await,
        ["k"]
    );
    let spaces = gateway
        .post(
            "/store/namespaces",
            json!({ "prefix": ["*"], "max_depth": 1 }),
        )
        .await
        .json();
    assert_eq!(spaces, json!({ "namespaces": [["a"]] }));
    for _ in 0..2 {
        let response = gateway
            .send(
                "DELETE",
                "/store/items",
                Some(json!({ "namespace": ["a", "b"], "key": "k" })),
            )
            .await;
        assert_eq!((response.code(), response.text()), (204, ""));
    }
    assert_eq!(
        gateway.get("/store/items?namespace=a.b&key=k").await.json(),
        Value::Null
    );
}

#[tokio::test]
async fn invalid_namespaces_are_rejected_as_by_the_platform() {
    let gateway = Gateway::new();
    for (label, text) in [
        (
            "a.b",
            "Namespace label 'a.b' must be a non-empty string without periods",
        ),
        ("", "Namespace label '' must be"),
    ] {
        let response = put(
            &gateway,
            json!({ "namespace": [label], "key": "k", "value": {} }),
        )
        .await;
        assert!(
            response.code() == 422 && response.text().starts_with(text),
            "{}",
            response.text()
        );
        let response = gateway
            .post(
                "/store/items/search",
                json!({ "namespace_prefix": [label] }),
            )
            .await;
        assert_eq!(response.code(), 422);
    }
    let keyless = gateway.get("/store/items?namespace=a").await;
    assert_eq!(
        (keyless.code(), keyless.json()),
        (400, json!({ "error": "Key is required" }))
    );
    assert_eq!(
        gateway
            .get("/store/items?namespace=a..b&key=k")
            .await
            .code(),
        422
    );
    assert_eq!(
        gateway.get("/store/items?key=%00").await.json(),
        Value::Null
    );
    assert_eq!(
        gateway
            .post("/store/namespaces", json!({ "prefix": ["a.b"] }))
            .await
            .json(),
        json!({ "namespaces": [] })
    );
}

#[tokio::test]
async fn wrong_fields_are_422_and_nothing_is_written() {
    let gateway = Gateway::new();
    let good = json!({ "namespace": ["n"], "key": "k", "value": {} });
    for (field, wrong) in [
        ("namespace", json!(null)),
        ("namespace", json!("n")),
        ("namespace", json!([1])),
        ("namespace", json!([])),
        ("namespace", json!(["\u{0}"])),
        ("namespace", json!(["x".repeat(2_000)])),
        ("key", json!(null)),
        ("key", json!(1)),
        ("key", json!("x".repeat(2_000))),
        ("value", json!(null)),
        ("value", json!("text")),
        ("value", json!([])),
        ("index", json!(true)),
        ("index", json!([1])),
        ("index", json!("text")),
        ("ttl", json!(0)),
        ("ttl", json!(-1)),
        ("ttl", json!("1")),
        ("ttl", json!(1e300)),
    ] {
        let mut body = good.clone();
        body[field] = wrong.clone();
        let response = put(&gateway, body).await;
        assert_eq!(response.code(), 422, "{field} {wrong}: {}", response.text());
    }
    for wrong in [
        json!({ "namespace_prefix": "a" }),
        json!({ "filter": [] }),
        json!({ "filter": { "x": { "$in": [1] } } }),
        json!({ "limit": 0 }),
        json!({ "limit": 1_001 }),
        json!({ "limit": "1" }),
        json!({ "offset": -1 }),
        json!({ "query": 1 }),
        json!({ "refresh_ttl": "yes" }),
    ] {
        assert_eq!(
            gateway
                .post("/store/items/search", wrong.clone())
                .await
                .code(),
            422,
            "{wrong}"
        );
    }
    for wrong in [
        json!({ "prefix": "a" }),
        json!({ "suffix": [1] }),
        json!({ "max_depth": 0 }),
        json!({ "limit": 0 }),
    ] {
        assert_eq!(
            gateway
                .post("/store/namespaces", wrong.clone())
                .await
                .code(),
            422,
            "{wrong}"
        );
    }
    assert_eq!(
        gateway.raw("PUT", "/store/items", "", &[]).await.code(),
        422
    );
    assert_eq!(keys(&gateway, json!({})).await, [""; 0]);
}

/// Gives all texts the same embedding, and counts calls.
#[derive(Debug, Default)]
struct CountingEmbedder(AtomicUsize);

#[async_trait]
impl Embedder for CountingEmbedder {
    fn dims(&self) -> usize {
        1
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ModelError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(vec![vec![1.0]; texts.len()])
    }
}

#[tokio::test]
async fn query_of_a_long_list_is_embedded_once() {
    let embedder = Arc::new(CountingEmbedder::default());
    let index = EmbeddingIndex {
        embedder: embedder.clone(),
        fields: vec![FieldPath::parse("text")],
    };
    let store = Arc::new(InMemoryItemStore::default());
    let clock = Arc::new(SystemClock);
    let items = ItemService::new(store, Some(index), TtlPolicy::default(), clock);
    let items = Arc::new(items);
    let gateway = Gateway::new().changed(|state| GatewayState { items, ..state });
    for n in 0..40 {
        let item = json!({ "namespace": ["n"], "key": format!("k{n}"), "value": { "text": "t" } });
        assert_eq!(put(&gateway, item).await.code(), 204);
    }
    let before = embedder.0.load(Ordering::SeqCst);
    let search = json!({ "namespace_prefix": ["n"], "query": "t", "limit": 100 });
    assert_eq!(keys(&gateway, search).await.len(), 40);
    assert_eq!(embedder.0.load(Ordering::SeqCst) - before, 1);
}
