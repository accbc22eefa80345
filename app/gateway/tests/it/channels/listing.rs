//! Listed platforms and connections.

use deerflow_domain::channels::ChannelState;
use serde_json::{Value, json};

use super::Channels;
use crate::keys::User;

const PROVIDERS: &str = "/api/channels/providers";

/// Returns `field` of each listed platform.
async fn field_of_each(channels: &Channels, field: &str) -> Value {
    let listed = channels.gateway.get(PROVIDERS).await.json();
    let providers = listed["providers"].as_array().expect("a list");
    providers
        .iter()
        .map(|provider| provider[field].clone())
        .collect()
}

#[tokio::test]
async fn enabled_platforms_are_listed_with_masked_secrets() {
    let channels = Channels::new();
    let response = channels.gateway.get(PROVIDERS).await;
    let token =
        json!({ "name": "bot_token", "label": "Bot token", "type": "password", "required": true });
    assert_eq!(
        response.json(),
        json!({ "enabled": true, "providers": [
            {
                "provider": "telegram", "display_name": "Telegram", "enabled": true, "configured": true,
                "connectable": true, "unavailable_reason": null, "auth_mode": "deep_link",
                "connection_status": "not_connected",
                "credential_fields": [token, { "name": "bot_username", "label": "Bot username", "type": "text", "required": true }],
                "credential_values": { "bot_token": "********", "bot_username": "my_bot" },
            },
            {
                "provider": "slack", "display_name": "Slack", "enabled": true, "configured": false,
                "connectable": false,
                "unavailable_reason": "Enter the required Slack credentials to connect this channel.",
                "auth_mode": "binding_code", "connection_status": "not_connected",
                "credential_fields": [token, { "name": "app_token", "label": "App token", "type": "password", "required": true }],
                "credential_values": {},
            },
            {
                "provider": "wechat", "display_name": "WeChat", "enabled": true, "configured": false,
                "connectable": false, "unavailable_reason": "This server does not support WeChat.",
                "auth_mode": "binding_code", "connection_status": "not_connected",
                "credential_fields": [token], "credential_values": {},
            },
        ] })
    );
    assert!(!response.text().contains("canary"));
}

#[tokio::test]
async fn stopped_channel_is_unavailable_with_a_reason() {
    let channels = Channels::new();
    for state in [
        ChannelState::Connecting,
        ChannelState::Displaced("x".to_owned()),
        ChannelState::Failed("x".to_owned()),
    ] {
        channels.service.0.lock().status("telegram").state = state;
        let reasons = field_of_each(&channels, "unavailable_reason").await;
        assert_eq!(
            reasons[0],
            "Telegram channel is configured but is not running. Check the credentials and service logs."
        );
    }
    channels.service.0.lock().status("telegram").state = ChannelState::Elsewhere;
    assert_eq!(
        field_of_each(&channels, "connectable").await,
        json!([true, false, false])
    );
}

#[tokio::test]
async fn connection_status_follows_the_users_newest_connection() {
    let channels = Channels::new();
    let ann = User::new(&channels.gateway, "ann").await;
    let status = async || {
        let listed = ann.send("GET", PROVIDERS, Value::Null).await.json();
        listed["providers"][0]["connection_status"].clone()
    };
    assert_eq!(status().await, "not_connected");
    let code = ann
        .send("POST", "/api/channels/telegram/connect", Value::Null)
        .await
        .json();
    channels
        .send_code(code["code"].as_str().expect("a code"), "u1")
        .await;
    assert_eq!(status().await, "connected");
    channels.service.0.lock().status("telegram").state = ChannelState::Connecting;
    assert_eq!(status().await, "not_connected");
    channels.service.0.lock().status("telegram").state = ChannelState::Connected;
    let listed = ann
        .send("GET", "/api/channels/connections", Value::Null)
        .await
        .json();
    let id = listed["connections"][0]["id"].as_str().expect("an id");
    let path = format!("/api/channels/connections/{id}");
    assert_eq!(ann.send("DELETE", &path, Value::Null).await.code(), 204);
    assert_eq!(status().await, "revoked");
}

#[tokio::test]
async fn disabled_connections_list_nothing_and_refuse_changes() {
    let channels = Channels::new();
    channels.service.0.lock().is_disabled = true;
    let gateway = &channels.gateway;
    assert_eq!(
        gateway.get(PROVIDERS).await.json(),
        json!({ "enabled": false, "providers": [] })
    );
    assert_eq!(
        gateway.get("/api/channels/connections").await.json(),
        json!({ "connections": [] })
    );
    let id = "22222222-2222-4222-8222-222222222222";
    for (method, path, body) in [
        ("DELETE", format!("connections/{id}"), None),
        ("POST", "telegram/connect".to_owned(), None),
        (
            "POST",
            "telegram/runtime-config".to_owned(),
            Some(json!({ "values": {} })),
        ),
        ("DELETE", "telegram/runtime-config".to_owned(), None),
    ] {
        let path = format!("/api/channels/{path}");
        let refused = gateway.send(method, &path, body).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (400, json!({ "detail": "Channel connections are disabled" })),
            "{method} {path}"
        );
    }
}
