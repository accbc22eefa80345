//! `POST /api/threads`.

use serde_json::json;

use crate::rig::{Rig, text};

#[tokio::test]
async fn new_thread_is_idle_and_empty() {
    let rig = Rig::start().await;
    let thread = rig
        .post("/api/threads", &json!({"metadata": {"label": "a"}}))
        .await
        .ok();
    assert!((1..=64).contains(&text(&thread["thread_id"]).len()));
    assert_eq!(thread["status"], "idle");
    assert_eq!(thread["metadata"], json!({"label": "a"}));
    assert_eq!(thread["values"], json!({}));
    assert_eq!(thread["interrupts"], json!({}));
    for time in ["created_at", "updated_at"] {
        assert!(
            text(&thread[time]).ends_with("+00:00"),
            "{time}: {}",
            thread[time]
        );
    }
}

#[tokio::test]
async fn creating_a_thread_twice_returns_existing_one() {
    let rig = Rig::start().await;
    let id = "7a0d2b6e-0f04-4a4b-9d0c-3a1f0c6d1e11";
    let first = rig
        .post(
            "/api/threads",
            &json!({"thread_id": id, "metadata": {"turn": 1}}),
        )
        .await
        .ok();
    assert_eq!(first["thread_id"], id);
    let second = rig
        .post(
            "/api/threads",
            &json!({"thread_id": id, "metadata": {"turn": 2}}),
        )
        .await
        .ok();
    assert_eq!(second["metadata"], json!({"turn": 1}));
    assert_eq!(second["created_at"], first["created_at"]);
}

#[tokio::test]
async fn foreign_keys_and_ownership_claims_are_dropped() {
    let rig = Rig::start().await;
    let body = json!({
        "if_exists": "do_nothing", "ttl": 5, "supersteps": [],
        "metadata": {"owner_id": "root", "user_id": "root", "kept": true},
    });
    assert_eq!(
        rig.post("/api/threads", &body).await.ok()["metadata"],
        json!({"kept": true})
    );
}

#[tokio::test]
async fn new_thread_has_a_state() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let state = rig.get(&format!("/api/threads/{thread}/state")).await.ok();
    assert_eq!(state["next"], json!([]));
    assert_eq!(state["tasks"], json!([]));
}

#[tokio::test]
async fn id_with_invalid_characters_is_rejected_with_its_path() {
    let rig = Rig::start().await;
    let long = "x".repeat(65);
    for id in ["", "a b", "a/b", "../etc", "ü", "a\u{0}b", "a.b", &long] {
        let detail = rig
            .post("/api/threads", &json!({"thread_id": id}))
            .await
            .refusal(422);
        assert_eq!(detail[0]["type"], "string_pattern_mismatch", "{id:?}");
        assert_eq!(detail[0]["loc"], json!(["body", "thread_id"]), "{id:?}");
    }
    for id in [json!(5), json!(["a"]), json!({})] {
        rig.post("/api/threads", &json!({"thread_id": id}))
            .await
            .refusal(422);
    }
    assert_eq!(
        rig.post("/api/threads/search", &json!({})).await.ok(),
        json!([])
    );
}
