//! The measured requests.

use serde_json::{Value, json};

use super::seed::LONG_THREAD;

/// Request that is repeated.
pub(super) struct Request {
    pub(super) name: &'static str,
    pub(super) path: String,
    /// Returns the body of the n-th repetition; `None` for a `GET`.
    pub(super) body: Option<Box<dyn Fn(usize) -> Value + Send + Sync>>,
}

fn post(
    name: &'static str,
    path: &str,
    body: impl Fn(usize) -> Value + Send + Sync + 'static,
) -> Request {
    Request {
        name,
        path: path.to_owned(),
        body: Some(Box::new(body)),
    }
}

fn search(name: &'static str, body: impl Fn(usize) -> Value + Send + Sync + 'static) -> Request {
    post(name, "/threads/search", body)
}

fn count(name: &'static str, body: Value) -> Request {
    post(name, "/threads/count", move |_| body.clone())
}

/// Returns all requests over this many threads.
pub(super) fn requests(threads: usize) -> Vec<Request> {
    let long = |path: &str| format!("/threads/{LONG_THREAD}{path}");
    let get = |name: &'static str, path: &str| Request {
        name,
        path: long(path),
        body: None,
    };
    vec![
        search("the newest 10", |_| json!({})),
        search(
            "the newest 100, ids only",
            |_| json!({ "limit": 100, "select": ["thread_id"] }),
        ),
        search("the newest 100, whole", |_| json!({ "limit": 100 })),
        search(
            "page in the middle",
            move |_| json!({ "offset": threads / 2, "select": ["thread_id"] }),
        ),
        search(
            "by metadata, one",
            move |n| json!({ "metadata": { "n": n * 37 % threads } }),
        ),
        search(
            "by metadata, none",
            |n| json!({ "metadata": { "n": format!("no {n}") } }),
        ),
        search(
            "by metadata, 1 in 1000",
            |n| json!({ "metadata": { "thousandth": n % 1000 } }),
        ),
        search(
            "by metadata, 1 in 30",
            |n| json!({ "metadata": { "thirtieth": n % 30 } }),
        ),
        search(
            "by metadata, all",
            |_| json!({ "metadata": { "common": true } }),
        ),
        search(
            "by nested metadata",
            |n| json!({ "metadata": { "of": { "team": n % 1000 }, "tags": ["x"] } }),
        ),
        search(
            "by graph",
            |_| json!({ "metadata": { "graph_id": "lead_agent" } }),
        ),
        search(
            "by another graph",
            |_| json!({ "metadata": { "graph_id": "nope" } }),
        ),
        search("idle ones", |_| json!({ "status": "idle" })),
        search("busy ones", |_| json!({ "status": "busy" })),
        search(
            "the oldest",
            |_| json!({ "sort_by": "created_at", "sort_order": "asc" }),
        ),
        search("by status", |_| json!({ "sort_by": "status" })),
        search("by id", |_| json!({ "sort_by": "thread_id" })),
        search("by state", |_| json!({ "sort_by": "state_updated_at" })),
        search(
            "by title",
            move |n| json!({ "values": { "title": format!("Thread {}", n * 41 % threads) } }),
        ),
        post(
            "the web UI's list",
            "/api/threads/search",
            |_| json!({ "limit": 50 }),
        ),
        count("count all", json!({})),
        count(
            "count by metadata, all",
            json!({ "metadata": { "common": true } }),
        ),
        count(
            "count by metadata, 1 in 1000",
            json!({ "metadata": { "thousandth": 7 } }),
        ),
        count("count idle ones", json!({ "status": "idle" })),
        get("the long thread", ""),
        get("its state", "/state"),
        get("its history, 1", "/history"),
        post(
            "its history, facts of 10",
            &long("/history"),
            |_| json!({ "limit": 10, "metadata": { "source": "nope" } }),
        ),
    ]
}
