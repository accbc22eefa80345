//! Rejected options.

use serde_json::{Value, json};

use super::GONE;
use crate::support::Gateway;

#[tokio::test]
async fn invalid_thread_options_are_rejected_with_a_text() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let own = format!("/threads/{thread}");
    let many: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("k{n}"), json!(n))).collect();
    let cases = [
        ("POST", "/threads", json!([])),
        ("POST", "/threads", json!("x")),
        ("POST", "/threads", json!({ "thread_id": 5 })),
        ("POST", "/threads", json!({ "thread_id": "abc" })),
        ("POST", "/threads", json!({ "metadata": "x" })),
        ("POST", "/threads", json!({ "if_exists": "maybe" })),
        ("POST", "/threads", json!({ "ttl": { "ttl": -1 } })),
        (
            "POST",
            "/threads",
            json!({ "ttl": { "ttl": 5, "strategy": "keep" } }),
        ),
        ("POST", "/threads", json!({ "supersteps": 1 })),
        ("POST", "/threads", json!({ "supersteps": [{}] })),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{}] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": 5 }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__start__", "values": 5 }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__start__", "command": { "goto": 1 } }] }] }),
        ),
        (
            "POST",
            "/threads",
            json!({ "supersteps": [{ "updates": [{ "as_node": "__input__" }, { "as_node": "model" }] }] }),
        ),
        ("PATCH", own.as_str(), json!({ "metadata": [] })),
        ("PATCH", own.as_str(), json!({ "ttl": "5" })),
        ("POST", "/threads/search", json!({ "ids": "x" })),
        ("POST", "/threads/search", json!({ "ids": ["x"] })),
        (
            "POST",
            "/threads/search",
            json!({ "ids": vec![GONE; 10_001] }),
        ),
        ("POST", "/threads/search", json!({ "metadata": many })),
        ("POST", "/threads/search", json!({ "metadata": [] })),
        ("POST", "/threads/search", json!({ "values": "x" })),
        (
            "POST",
            "/threads/search",
            json!({ "values": { "messages": [] } }),
        ),
        ("POST", "/threads/search", json!({ "status": "nope" })),
        ("POST", "/threads/search", json!({ "limit": 0 })),
        ("POST", "/threads/search", json!({ "limit": 1001 })),
        ("POST", "/threads/search", json!({ "limit": 1.5 })),
        ("POST", "/threads/search", json!({ "offset": -1 })),
        ("POST", "/threads/search", json!({ "sort_by": "nope" })),
        ("POST", "/threads/search", json!({ "sort_order": "up" })),
        ("POST", "/threads/search", json!({ "select": "thread_id" })),
        ("POST", "/threads/search", json!({ "select": ["nope"] })),
        (
            "POST",
            "/threads/search",
            json!({ "extract": { "a": "secret.x" } }),
        ),
        ("POST", "/threads/search", json!({ "extract": { "a": 1 } })),
        (
            "POST",
            "/threads/search",
            json!({ "extract": (0..11).map(|n| (n.to_string(), json!("metadata.a"))).collect::<serde_json::Map<_, _>>() }),
        ),
        ("POST", "/threads/count", json!({ "status": 1 })),
        ("POST", "/threads/prune", json!({})),
        ("POST", "/threads/prune", json!({ "thread_ids": [5] })),
        (
            "POST",
            "/threads/prune",
            json!({ "thread_ids": [], "strategy": "nope" }),
        ),
        ("POST", &format!("{own}/history"), json!({ "limit": "x" })),
        ("POST", &format!("{own}/history"), json!({ "before": 5 })),
        ("POST", &format!("{own}/history"), json!({ "metadata": 5 })),
        (
            "POST",
            &format!("{own}/history"),
            json!({ "checkpoint": 5 }),
        ),
        ("POST", &format!("{own}/state/checkpoint"), json!({})),
        (
            "POST",
            &format!("{own}/state/checkpoint"),
            json!({ "checkpoint": {}, "subgraphs": "x" }),
        ),
        (
            "GET",
            &format!("{own}/state?subgraphs=perhaps"),
            Value::Null,
        ),
        ("GET", &format!("{own}/history?limit=0"), Value::Null),
        ("GET", "/threads/abc", Value::Null),
        ("DELETE", "/threads/abc", Value::Null),
        ("POST", "/threads/abc/copy", Value::Null),
    ];
    let before = gateway.post("/threads/search", json!({})).await.json();
    for (method, path, body) in cases {
        let response = gateway
            .send(
                method,
                path,
                Some(body.clone()).filter(|body| !body.is_null()),
            )
            .await;
        assert_eq!(
            response.code(),
            422,
            "{method} {path} {body}: {}",
            response.text()
        );
        assert!(
            response.json()["detail"].is_string(),
            "{method} {path} {body}"
        );
    }
    assert_eq!(
        gateway.post("/threads/search", json!({})).await.json(),
        before
    );
}
