//! States and histories of threads.

use serde_json::{Value, json};

use super::{GONE, keys};
use crate::support::{Gateway, saying};

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
