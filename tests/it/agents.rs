//! Agents that users create over HTTP, and runs that use them.

use reqwest::Method;
use serde_json::json;

use crate::rig::{HttpResponse, MODEL, Rig, body_with, text};

#[tokio::test]
async fn agent_created_over_http_uses_soul_and_user_profile() {
    let rig = Rig::with("agents_api: {enabled: true}").await;
    assert_eq!(
        rig.get("/api/features").await.ok()["agents_api"]["enabled"],
        true
    );
    let draft = json!({"name": "Scout", "soul": "You look before you leap.", "model": MODEL, "tool_groups": []});
    let created = rig.post("/api/agents", &draft).await;
    assert_eq!(
        (created.status.as_u16(), &created.json()["name"]),
        (201, &json!("scout"))
    );
    rig.put("/api/user-profile", &json!({"content": "I am a cook."}))
        .await
        .ok();
    let stored = std::fs::read_to_string(
        rig.gateway
            .home()
            .join(".deer-flow/users/default/agents/scout/config.yaml"),
    )
    .expect("a file");
    assert!(stored.contains("name: scout"), "{stored}");
    let mut run_request = body_with("then say done", json!({}));
    run_request["context"]["agent_name"] = json!("scout");
    let thread = rig.thread().await;
    rig.run(&thread, &run_request).await;
    let request = rig.model.requests().pop().expect("a request");
    let system = text(&request.messages[0]["content"]).to_owned();
    assert!(
        system.starts_with("You are scout,")
            && system.contains("You look before you leap.")
            && system.contains("I am a cook.")
    );
    let removed = HttpResponse::of(rig.request(Method::DELETE, "/api/agents/scout")).await;
    assert_eq!((removed.status.as_u16(), removed.text.as_str()), (204, ""));
    assert!(text(&rig.get("/api/agents/scout").await.refusal(404)).contains("scout"));
    let gone = rig
        .post(&format!("/api/threads/{thread}/runs"), &run_request)
        .await;
    assert_eq!(gone.status.as_u16(), 404, "{}", gone.text);
}

#[tokio::test]
async fn agents_api_is_disabled_by_default() {
    let rig = Rig::start().await;
    assert!(text(&rig.get("/api/agents").await.refusal(403)).contains("agents_api.enabled"));
}
