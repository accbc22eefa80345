//! Features of DeerFlow that this server does not have.

use serde_json::{Value, json};

use crate::keys::User;
use crate::support::Gateway;

#[tokio::test]
async fn lark_is_not_installed_and_its_operations_say_why() {
    let gateway = Gateway::new();
    let status = gateway.get("/api/integrations/lark/status").await.json();
    assert_eq!(status["installed"], false);
    assert_eq!(status["auth"]["status"], "unavailable");
    assert!(status["version"].is_string() && status["install_path"].is_string());
    for operation in [
        "install",
        "config/start",
        "config/complete",
        "config/credentials",
        "auth/start",
        "auth/complete",
    ] {
        let path = format!("/api/integrations/lark/{operation}");
        let refused = gateway.post(&path, json!({})).await;
        let detail = refused.json()["detail"].clone();
        assert_eq!(refused.code(), 501, "{operation}: {detail}");
        assert!(
            detail
                .as_str()
                .is_some_and(|text| text.contains("not available"))
        );
    }
    let user = User::new(&gateway, "ann").await;
    let refused = user
        .send("POST", "/api/integrations/lark/install", Value::Null)
        .await;
    assert_eq!(refused.code(), 403);
}

#[tokio::test]
async fn browser_is_disabled() {
    let gateway = Gateway::new();
    let body = json!({ "url": "https://example.com" });
    let path = format!("/api/threads/{}/browser/navigate", gateway.thread().await);
    let refused = gateway.post(&path, body.clone()).await;
    let detail = refused.json()["detail"].clone();
    assert_eq!(
        (refused.code(), detail),
        (404, json!("Browser automation is not enabled"))
    );
    let unknown = gateway
        .post("/api/threads/none/browser/navigate", body)
        .await;
    assert_eq!(unknown.json()["detail"], "Thread none not found");
}
