//! Codes, and the connections that they create.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use deerflow_domain::channels::ConsumedCode;
use serde_json::{Value, json};

use super::Channels;
use crate::keys::User;

fn connect_path(provider: &str) -> String {
    format!("/api/channels/{provider}/connect")
}

#[tokio::test]
async fn code_connects_its_sender_to_the_user_once() {
    let channels = Channels::new();
    let ann = User::new(&channels.gateway, "ann").await;
    let created = ann
        .send("POST", &connect_path("telegram"), Value::Null)
        .await;
    let code = created.json()["code"].as_str().expect("a code").to_owned();
    assert_eq!(
        created.json(),
        json!({
            "provider": "telegram", "mode": "deep_link", "url": format!("https://t.me/my_bot?start={code}"), "code": code,
            "instruction": format!("Send /connect {code} to the DeerFlow Telegram bot."), "expires_in": 600,
        })
    );
    let bytes = URL_SAFE_NO_PAD.decode(&code).expect("base64url");
    assert_eq!(bytes.len(), 16);
    let ConsumedCode::Connected(connection) = channels.send_code(&code, "u1").await else {
        panic!("refused")
    };
    assert_eq!(channels.send_code(&code, "u2").await, ConsumedCode::Invalid);
    let connections = "/api/channels/connections";
    assert_eq!(
        ann.send("GET", connections, Value::Null).await.json(),
        json!({ "connections": [{
            "id": connection.id, "provider": "telegram", "status": "connected", "external_account_id": "u1",
            "external_account_name": "@u1", "workspace_id": null, "workspace_name": null, "scopes": [], "metadata": {},
        }] })
    );
    let bob = User::new(&channels.gateway, "bob").await;
    let of_bob = bob.send("GET", connections, Value::Null).await;
    assert_eq!(of_bob.json(), json!({ "connections": [] }));
    let not_found = json!({ "detail": "Channel connection not found" });
    let path = format!("{connections}/{}", connection.id);
    for (user, path, expected) in [
        (&bob, path.as_str(), 404),
        (&ann, "/api/channels/connections/x", 404),
        (&ann, path.as_str(), 204),
        (&ann, path.as_str(), 404),
    ] {
        let response = user.send("DELETE", path, Value::Null).await;
        assert_eq!(response.code(), expected, "{path}");
        if expected == 404 {
            assert_eq!(response.json(), not_found);
        } else {
            assert!(response.body.is_empty());
        }
    }
}

#[tokio::test]
async fn platform_without_link_has_instruction_only() {
    let channels = Channels::new();
    channels
        .service
        .0
        .lock()
        .status("discord")
        .profile
        .connections = true;
    let path = connect_path("discord");
    let created = channels.gateway.send("POST", &path, None).await.json();
    assert_eq!(
        (&created["mode"], &created["url"]),
        (&json!("binding_code"), &Value::Null)
    );
    let code = created["code"].as_str().expect("a code");
    assert_eq!(
        created["instruction"],
        format!("Send /connect {code} to the DeerFlow Discord bot.")
    );
}

#[tokio::test]
async fn unavailable_platform_gives_no_code() {
    let channels = Channels::new();
    for (provider, status, detail) in [
        ("unknown", 404, "Unknown channel provider"),
        ("discord", 400, "Channel provider is not enabled"),
        (
            "slack",
            400,
            "Enter the required Slack credentials to connect this channel.",
        ),
        ("wechat", 400, "This server does not support WeChat."),
    ] {
        let path = connect_path(provider);
        let refused = channels.gateway.send("POST", &path, None).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (status, json!({ "detail": detail }))
        );
    }
}

#[tokio::test]
async fn sixth_pending_code_is_refused() {
    let channels = Channels::new();
    let ann = User::new(&channels.gateway, "ann").await;
    let path = connect_path("telegram");
    for _ in 0..5 {
        assert_eq!(ann.send("POST", &path, Value::Null).await.code(), 200);
    }
    let refused = ann.send("POST", &path, Value::Null).await;
    let detail = "Too many pending channel connection codes. Wait for existing codes to expire or use one of them.";
    assert_eq!(
        (refused.code(), refused.json()),
        (429, json!({ "detail": detail }))
    );
    let bob = User::new(&channels.gateway, "bob").await;
    assert_eq!(bob.send("POST", &path, Value::Null).await.code(), 200);
}
