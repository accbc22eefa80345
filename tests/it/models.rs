//! `/api/models` and `/api/features`: the first requests of the web UI.

use serde_json::json;

use crate::rig::{CANARY, MODEL, Rig, list};

#[tokio::test]
async fn models_are_listed_without_key_and_address() {
    let rig = Rig::start().await;
    let answer = rig.get("/api/models").await;
    let listed = answer.ok();
    assert_eq!(list(&listed["models"]).len(), 1);
    assert_eq!(listed["models"][0]["name"], MODEL);
    assert_eq!(listed["models"][0]["model"], "scripted-1");
    assert_eq!(listed["models"][0]["supports_thinking"], false);
    assert!(listed["token_usage"]["enabled"].is_boolean());
    assert!(
        !answer.text.contains(CANARY) && !answer.text.contains("base_url"),
        "{}",
        answer.text
    );
    assert_eq!(
        rig.get(&format!("/api/models/{MODEL}")).await.ok(),
        listed["models"][0]
    );
    rig.get("/api/models/nobody").await.refusal(404);
}

#[tokio::test]
async fn web_ui_start_requests_succeed() {
    let rig = Rig::start().await;
    let features = rig.get("/api/features").await.ok();
    for feature in ["agents_api", "browser_control", "mcp_tasks"] {
        assert!(
            features[feature]["enabled"].is_boolean(),
            "{feature}: {features}"
        );
    }
    let suggestions = rig.get("/api/suggestions/config").await.ok();
    assert!(
        suggestions["enabled"].is_boolean() && suggestions["max_suggestions"].is_u64(),
        "{suggestions}"
    );
    assert_eq!(
        rig.post(
            "/api/langgraph/threads/search",
            &json!({"limit": 50, "offset": 0})
        )
        .await
        .ok(),
        json!([])
    );
}
