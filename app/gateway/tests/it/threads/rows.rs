//! Threads: creation, changes, search, copies and deletion.

use futures_util::FutureExt;
use serde_json::json;

use super::{GONE, keys};
use crate::support::{Gateway, saying, saying_with};

#[tokio::test]
async fn existing_thread_is_returned_or_a_conflict_per_dialect() {
    let gateway = Gateway::new();
    let body = json!({ "thread_id": GONE, "metadata": { "a": 1, "user_id": "x" }, "ttl": {} });
    let made = gateway.post("/api/threads", body.clone()).await.json();
    assert_eq!(
        keys(&made),
        [
            "thread_id",
            "status",
            "created_at",
            "updated_at",
            "metadata",
            "values",
            "interrupts"
        ]
    );
    assert_eq!(
        (&made["metadata"], &made["values"], &made["status"]),
        (&json!({ "a": 1 }), &json!({}), &json!("idle"))
    );
    assert!(
        made["created_at"]
            .as_str()
            .expect("a time")
            .ends_with("+00:00")
    );
    assert_eq!(
        gateway
            .post(
                "/api/threads",
                json!({ "thread_id": GONE, "metadata": { "b": 2 } })
            )
            .await
            .json(),
        made
    );

    let again = gateway.post("/threads", body).await;
    assert_eq!(
        (again.code(), again.json()),
        (
            409,
            json!({ "detail": format!("Thread with ID {GONE} already exists") })
        )
    );
    let retained = gateway
        .post(
            "/threads",
            json!({ "thread_id": GONE, "if_exists": "do_nothing", "metadata": { "c": 3 } }),
        )
        .await;
    assert_eq!(
        (retained.code(), &retained.json()["metadata"]),
        (200, &json!({ "a": 1 }))
    );
}

#[tokio::test]
async fn invalid_ids_are_reported_per_dialect() {
    let gateway = Gateway::new();
    let deerflow = gateway
        .post("/api/threads", json!({ "thread_id": "../x" }))
        .await;
    assert_eq!(
        (deerflow.code(), deerflow.json()),
        (
            422,
            json!({ "detail": [{ "type": "string_pattern_mismatch", "loc": ["body", "thread_id"],
                "msg": "String should match pattern '^[A-Za-z0-9_-]{1,64}$'", "input": "../x",
                "ctx": { "pattern": "^[A-Za-z0-9_-]{1,64}$" } }] })
        )
    );
    for (method, path) in [
        ("GET", "/threads/abc"),
        ("DELETE", "/threads/abc"),
        ("GET", "/threads/abc/state"),
    ] {
        let platform = gateway.send(method, path, None).await;
        assert_eq!(
            (platform.code(), platform.json()),
            (
                422,
                json!({ "detail": "Invalid thread ID: must be a UUID" })
            )
        );
    }
    assert_eq!(
        gateway.get(&format!("/threads/{GONE}")).await.json(),
        json!({ "detail": format!("Thread with ID {GONE} not found") })
    );
    assert_eq!(
        gateway.get(&format!("/api/threads/{GONE}")).await.json(),
        json!({ "detail": format!("Thread {GONE} not found") })
    );
}

#[tokio::test]
async fn patch_merges_metadata_and_delete_removes_all_data() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let before = gateway.get(&format!("/api/threads/{thread}")).await.json();
    let pinned = gateway
        .send(
            "PATCH",
            &format!("/api/threads/{thread}"),
            Some(json!({ "metadata": { "deerflow_pinned": true } })),
        )
        .await
        .json();
    assert_eq!(
        (&pinned["metadata"], &pinned["updated_at"]),
        (&json!({ "deerflow_pinned": true }), &before["updated_at"])
    );
    let minimal = gateway
        .raw(
            "PATCH",
            &format!("/threads/{thread}"),
            r#"{"metadata":{"m":1}}"#,
            &[("prefer", "return=minimal")],
        )
        .await;
    assert_eq!((minimal.code(), minimal.body.len()), (204, 0));

    let deleted = gateway
        .send("DELETE", &format!("/api/threads/{thread}"), None)
        .await;
    assert_eq!(
        (deleted.code(), deleted.json()),
        (
            200,
            json!({ "success": true, "message": format!("Deleted local thread data for {thread}") })
        )
    );
    assert_eq!(*gateway.files.removed.lock(), [format!("default/{thread}")]);
    assert_eq!(
        gateway
            .send("DELETE", &format!("/api/threads/{thread}"), None)
            .await
            .code(),
        404
    );
    let other = gateway.thread().await;
    let deleted = gateway
        .send("DELETE", &format!("/threads/{other}"), None)
        .await;
    assert_eq!((deleted.code(), deleted.body.len()), (204, 0));
    for path in ["runs", "state", "history"] {
        assert_eq!(
            gateway
                .get(&format!("/threads/{other}/{path}"))
                .await
                .code(),
            404,
            "{path}"
        );
    }
}

#[tokio::test]
async fn search_pages_selects_and_puts_pinned_threads_first() {
    let gateway = Gateway::new();
    for (index, pinned) in [(0, true), (1, false), (2, false)] {
        gateway
            .post(
                "/api/threads",
                json!({ "metadata": { "mark": "m", "i": index, "deerflow_pinned": pinned } }),
            )
            .await;
    }
    let found = gateway
        .post(
            "/api/threads/search",
            json!({ "metadata": { "mark": "m" }, "select": ["thread_id"] }),
        )
        .await
        .json();
    assert_eq!(found.as_array().expect("a list").len(), 3);
    assert_eq!(
        (&found[0]["metadata"]["i"], &found[0]["values"]),
        (&json!(0), &json!({}))
    );
    let page = gateway
        .post(
            "/threads/search",
            json!({ "metadata": { "mark": "m" }, "limit": 1, "select": ["thread_id"], "extract": { "n": "metadata.i" } }),
        )
        .await;
    assert_eq!(
        (
            page.header("x-pagination-total"),
            page.header("x-pagination-next")
        ),
        ("2", "1")
    );
    assert_eq!(keys(&page.json()[0]), ["thread_id", "extracted"]);
    assert_eq!(
        gateway
            .post("/threads/count", json!({ "metadata": { "mark": "m" } }))
            .await
            .json(),
        json!(3)
    );
    for (path, body) in [
        ("/api/threads/search", json!({ "metadata": { "a.b": 1 } })),
        ("/api/threads/search", json!({ "metadata": { "a": [1] } })),
        ("/api/threads/search", json!({ "limit": 0 })),
        ("/threads/search", json!({ "limit": 5000 })),
        ("/threads/search", json!({ "status": "nope" })),
        ("/threads/search", json!({ "select": ["nope"] })),
    ] {
        assert_eq!(
            gateway.post(path, body.clone()).await.code(),
            422,
            "{path} {body}"
        );
    }
    let detail = gateway
        .post("/api/threads/search", json!({ "limit": 0 }))
        .await
        .json()["detail"]
        .clone();
    assert_eq!(
        detail,
        json!([{ "type": "greater_than_equal", "loc": ["body", "limit"], "msg": "Input should be greater than or equal to 1", "input": 0, "ctx": { "ge": 1 } }])
    );
}

#[tokio::test]
async fn busy_thread_is_neither_updated_nor_deleted() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(
            &format!("/api/threads/{thread}/runs"),
            saying_with("slow", json!({})),
        )
        .await;
    let update = gateway
        .post(
            &format!("/api/threads/{thread}/state"),
            json!({ "values": { "title": "x" } }),
        )
        .await;
    assert_eq!(
        (update.code(), update.json()),
        (
            409,
            json!({ "detail": "Thread has a run in flight. Update state after the run finishes." })
        )
    );
    let delete = gateway
        .send("DELETE", &format!("/api/threads/{thread}"), None)
        .await;
    assert_eq!(
        (delete.code(), delete.json()),
        (
            409,
            json!({ "detail": "Thread has work in flight. Delete it after the work finishes." })
        )
    );
    assert_eq!(
        gateway.get(&format!("/threads/{thread}")).await.json()["status"],
        "busy"
    );
    let patched = gateway
        .send(
            "PATCH",
            &format!("/api/threads/{thread}"),
            Some(json!({ "metadata": { "agent_name": "x" } })),
        )
        .await;
    assert_eq!(patched.code(), 200);
}

#[tokio::test]
async fn copy_has_the_history_under_its_own_id() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(
            &format!("/threads/{thread}/runs/wait"),
            saying("say original"),
        )
        .await;
    let copy = gateway
        .send("POST", &format!("/threads/{thread}/copy"), None)
        .await
        .json();
    let id = copy["thread_id"].as_str().expect("an id");
    assert_ne!(id, thread);
    let state = gateway.get(&format!("/threads/{id}/state")).await.json();
    assert_eq!(
        (
            &state["checkpoint"]["thread_id"],
            &state["values"]["messages"][1]["content"]
        ),
        (&json!(id), &json!("original"))
    );
}

#[tokio::test]
async fn deletion_completes_after_its_client_disconnects() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    assert!(
        gateway
            .send("DELETE", &format!("/threads/{thread}"), None)
            .now_or_never()
            .is_none(),
        "the client disconnected before the response"
    );
    while gateway.files.removed.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(gateway.get(&format!("/threads/{thread}")).await.code(), 404);
}
