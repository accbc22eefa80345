//! Threads, states and histories in both dialects.

use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::support::{Gateway, saying, saying_with};

const GONE: &str = "9c909fe5-1423-4566-9403-37f8a945b29b";

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

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
async fn a_new_thread_has_an_empty_state_and_history() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(
        state,
        json!({ "values": {}, "next": [], "tasks": [], "metadata": null, "created_at": null, "checkpoint": null,
            "parent_checkpoint": null, "interrupts": [], "checkpoint_id": null, "parent_checkpoint_id": null })
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{thread}/state"))
            .await
            .json()["values"],
        json!({ "messages": [] })
    );
    assert_eq!(
        gateway
            .get(&format!("/api/threads/{GONE}/state"))
            .await
            .code(),
        404
    );
    assert_eq!(
        gateway
            .post(&format!("/api/threads/{GONE}/history"), json!({}))
            .await
            .json(),
        json!([])
    );
    assert_eq!(
        gateway
            .get(&format!("/threads/{GONE}/history"))
            .await
            .code(),
        404
    );
    assert_eq!(
        gateway
            .get(&format!("/threads/{thread}/history?limit=many"))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn history_is_formatted_per_dialect() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let deerflow = gateway
        .post(
            &format!("/api/langgraph/threads/{thread}/history"),
            json!({ "limit": 2 }),
        )
        .await
        .json();
    assert_eq!(
        keys(&deerflow[0]),
        [
            "checkpoint_id",
            "parent_checkpoint_id",
            "metadata",
            "values",
            "created_at",
            "next"
        ]
    );
    assert!(
        deerflow[0]["values"]["messages"].is_array()
            && deerflow[1]["values"].get("messages").is_none()
    );
    let platform = gateway
        .post(&format!("/threads/{thread}/history"), json!({ "limit": 9 }))
        .await
        .json();
    assert_eq!(platform[0]["checkpoint"]["thread_id"], thread.as_str());
    let newest = platform[0]["checkpoint_id"].as_str().expect("an id");
    for before in [
        json!(newest),
        json!({ "checkpoint_id": newest }),
        json!({ "configurable": { "checkpoint_id": newest } }),
    ] {
        let older = gateway
            .post(
                &format!("/threads/{thread}/history"),
                json!({ "limit": 9, "before": before }),
            )
            .await
            .json();
        assert_eq!(
            older,
            Value::from(platform.as_array().expect("a list")[1..].to_vec())
        );
    }
    let at = gateway
        .get(&format!("/threads/{thread}/state/{newest}"))
        .await
        .json();
    assert_eq!(
        at["values"]["messages"].as_array().expect("messages").len(),
        2
    );
    let by_body = gateway
        .post(
            &format!("/threads/{thread}/state/checkpoint"),
            json!({ "checkpoint": platform[0]["checkpoint"] }),
        )
        .await
        .json();
    assert_eq!(by_body, at);
}

#[tokio::test]
async fn newest_history_entry_has_the_channels_of_the_web_ui() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/api/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let mut shown = json!({
        "title": "T",
        "artifacts": ["/mnt/user-data/outputs/a.md"],
        "todos": [{ "content": "one", "status": "in_progress" }],
    });
    let update = gateway
        .post(
            &format!("/api/threads/{thread}/state"),
            json!({ "values": shown }),
        )
        .await;
    assert_eq!(update.code(), 200, "{}", update.text());
    let goal = gateway
        .send(
            "PUT",
            &format!("/api/threads/{thread}/goal"),
            Some(json!({ "objective": "all done" })),
        )
        .await
        .json();
    shown["goal"] = goal["goal"].clone();
    let picked = |values: &Value| json!({ "title": values["title"], "artifacts": values["artifacts"], "todos": values["todos"], "goal": values["goal"] });
    for prefix in ["/api", "/api/langgraph", ""] {
        let entries = gateway
            .post(
                &format!("{prefix}/threads/{thread}/history"),
                json!({ "limit": 2 }),
            )
            .await
            .json();
        assert_eq!(picked(&entries[0]["values"]), shown, "{prefix}");
        assert!(entries[0]["values"]["messages"].is_array(), "{prefix}");
        let state = gateway
            .get(&format!("{prefix}/threads/{thread}/state"))
            .await
            .json();
        assert_eq!(picked(&state["values"]), shown, "{prefix}");
    }
    let older = gateway
        .post(
            &format!("/api/threads/{thread}/history"),
            json!({ "limit": 2 }),
        )
        .await
        .json()[1]["values"]
        .clone();
    assert_eq!(
        (
            older.get("todos"),
            older.get("artifacts"),
            older.get("goal")
        ),
        (None, None, None),
        "once is enough"
    );
    gateway
        .send("DELETE", &format!("/api/threads/{thread}/goal"), None)
        .await;
    let cleared = gateway
        .post(
            &format!("/api/threads/{thread}/history"),
            json!({ "limit": 1 }),
        )
        .await
        .json()[0]["values"]
        .clone();
    assert_eq!(cleared["goal"], Value::Null);
}

#[tokio::test]
async fn a_state_update_renames_replaces_and_forks() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    gateway
        .post(&format!("/api/threads/{thread}/runs/wait"), saying("say a"))
        .await;
    let path = format!("/api/threads/{thread}/state");
    let renamed = gateway
        .post(&path, json!({ "values": { "title": "T" } }))
        .await;
    assert_eq!(
        (renamed.code(), &renamed.json()["values"]["title"]),
        (200, &json!("T"))
    );
    let found = gateway.post("/api/threads/search", json!({})).await.json();
    assert_eq!(found[0]["values"], json!({ "title": "T" }));

    let replaced =
        gateway.post(&path, json!({ "values": { "messages": [{ "type": "human", "content": "only", "id": "h" }] } })).await.json();
    let shown = replaced["values"]["messages"].as_array().expect("messages");
    assert_eq!((shown.len(), &shown[0]["content"]), (1, &json!("only")));
    assert_eq!(
        gateway.get(&path).await.json()["values"]["messages"]
            .as_array()
            .expect("messages")
            .len(),
        1
    );

    let unknown = gateway
        .post(&path, json!({ "values": { "nope": 1 } }))
        .await;
    assert_eq!(
        (unknown.code(), unknown.json()),
        (
            422,
            json!({ "detail": "Unknown thread-state field(s): nope" })
        )
    );
    assert_eq!(
        gateway
            .post(&path, json!({ "checkpoint_id": GONE }))
            .await
            .json(),
        json!({ "detail": format!("Checkpoint {GONE} not found") })
    );

    let root = format!("/threads/{thread}/state");
    let reduced =
        gateway.post(&root, json!({ "values": { "messages": [{ "role": "user", "content": "more" }] }, "as_node": "__start__" })).await;
    assert_eq!(
        keys(&reduced.json()),
        ["checkpoint", "configurable", "checkpoint_id"]
    );
    let state = gateway.get(&root).await.json();
    assert_eq!(
        (
            state["values"]["messages"]
                .as_array()
                .expect("messages")
                .len(),
            &state["next"]
        ),
        (2, &json!(["model"]))
    );
    assert_eq!(state["metadata"]["source"], "update");
    let bad = gateway
        .post(&root, json!({ "values": {}, "as_node": "nope" }))
        .await;
    assert_eq!(
        (bad.code(), bad.json()),
        (400, json!({ "detail": "Node nope does not exist" }))
    );
    let fresh = gateway.thread().await;
    assert_eq!(
        gateway
            .post(
                &format!("/threads/{fresh}/state"),
                json!({ "values": { "title": "x" } })
            )
            .await
            .code(),
        400
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
