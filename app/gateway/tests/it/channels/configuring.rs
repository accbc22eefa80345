//! Credentials that administrators enter.

use deerflow_domain::channels::ChannelRuntimeError;
use serde_json::{Value, json};

use super::Channels;
use crate::keys::User;

const TELEGRAM: &str = "/api/channels/telegram/runtime-config";
const SLACK: &str = "/api/channels/slack/runtime-config";

fn stored(channels: &Channels, provider: &str) -> Value {
    json!(channels.service.0.lock().credentials.get(provider))
}

#[tokio::test]
async fn credentials_are_stored_trimmed_and_returned_masked() {
    let channels = Channels::new();
    let values = json!({ "bot_token": " xoxb-canary ", "app_token": "xapp-canary", "other": "x" });
    let configured = channels
        .gateway
        .post(SLACK, json!({ "values": values }))
        .await;
    assert_eq!(configured.code(), 200, "{}", configured.text());
    let provider = configured.json();
    assert_eq!(
        (
            &provider["provider"],
            &provider["configured"],
            &provider["connectable"]
        ),
        (&json!("slack"), &json!(true), &json!(true))
    );
    assert_eq!(
        provider["credential_values"],
        json!({ "bot_token": "********", "app_token": "********" })
    );
    assert_eq!(
        stored(&channels, "slack"),
        json!({ "bot_token": "xoxb-canary", "app_token": "xapp-canary" })
    );
    let forgotten = channels.gateway.send("DELETE", SLACK, None).await;
    assert_eq!(
        (forgotten.code(), &forgotten.json()["configured"]),
        (200, &json!(false))
    );
    assert_eq!(stored(&channels, "slack"), Value::Null);
}

#[tokio::test]
async fn deleted_credentials_disconnect_all_users() {
    let channels = Channels::new();
    let ann = User::new(&channels.gateway, "ann").await;
    let code = ann
        .send("POST", "/api/channels/telegram/connect", Value::Null)
        .await
        .json();
    channels
        .send_code(code["code"].as_str().expect("a code"), "u1")
        .await;
    let deleted = channels.gateway.send("DELETE", TELEGRAM, None).await;
    assert_eq!(deleted.code(), 200);
    let connections = ann
        .send("GET", "/api/channels/connections", Value::Null)
        .await
        .json();
    assert_eq!(connections["connections"][0]["status"], "revoked");
}

#[tokio::test]
async fn masked_value_keeps_the_stored_one() {
    let channels = Channels::new();
    let values = json!({ "bot_token": "********", "bot_username": "new_bot" });
    let configured = channels
        .gateway
        .post(TELEGRAM, json!({ "values": values }))
        .await;
    assert_eq!(configured.code(), 200);
    assert_eq!(
        stored(&channels, "telegram"),
        json!({ "bot_token": "1:canary", "bot_username": "new_bot" })
    );
}

#[tokio::test]
async fn incomplete_or_refused_credentials_store_nothing() {
    let channels = Channels::new();
    let detail = "Missing required channel configuration: Bot token, App token";
    for values in [
        json!({}),
        json!({ "values": {} }),
        json!({ "values": { "bot_token": "********", "app_token": "  " } }),
    ] {
        let refused = channels.gateway.post(SLACK, values).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (400, json!({ "detail": detail }))
        );
    }
    let number = json!({ "values": { "bot_token": 5 } });
    let refused = channels.gateway.post(SLACK, number).await;
    assert_eq!(refused.code(), 422);
    let issue = &refused.json()["detail"][0];
    assert_eq!(
        (&issue["type"], &issue["loc"]),
        (
            &json!("string_type"),
            &json!(["body", "values", "bot_token"])
        )
    );
    let values = json!({ "values": { "bot_token": "xoxb-canary", "app_token": "b" } });
    for (refusal, status, detail) in [
        (
            ChannelRuntimeError::Refused("invalid_auth".to_owned()),
            400,
            "Failed to start Slack channel. Check the values and try again.",
        ),
        (
            ChannelRuntimeError::Unavailable("slack does not respond".to_owned()),
            503,
            "slack does not respond",
        ),
    ] {
        channels.service.0.lock().refusal = Some(refusal);
        let refused = channels.gateway.post(SLACK, values.clone()).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (status, json!({ "detail": detail }))
        );
    }
    assert_eq!(stored(&channels, "slack"), Value::Null);
}

#[tokio::test]
async fn unsupported_or_unknown_platform_takes_no_credentials() {
    let channels = Channels::new();
    for (provider, status, detail) in [
        ("unknown", 404, "Unknown channel provider"),
        ("discord", 400, "Channel provider is not enabled"),
        ("wechat", 400, "This server does not support WeChat."),
    ] {
        let path = format!("/api/channels/{provider}/runtime-config");
        let body = json!({ "values": { "bot_token": "x" } });
        for (method, body) in [("POST", Some(body)), ("DELETE", None)] {
            let refused = channels.gateway.send(method, &path, body).await;
            assert_eq!(
                (refused.code(), refused.json()),
                (status, json!({ "detail": detail })),
                "{method}"
            );
        }
    }
}

#[tokio::test]
async fn credentials_and_restarts_are_for_administrators_only() {
    let channels = Channels::new();
    let ann = User::new(&channels.gateway, "ann").await;
    let values = json!({ "values": { "bot_token": "x" } });
    for (method, path, body, what) in [
        ("POST", TELEGRAM, values, "credentials"),
        ("DELETE", TELEGRAM, Value::Null, "credentials"),
        (
            "POST",
            "/api/channels/telegram/restart",
            Value::Null,
            "workers",
        ),
    ] {
        let refused = ann.send(method, path, body).await;
        let detail = format!("Admin privileges required to manage channel runtime {what}.");
        assert_eq!(
            (refused.code(), refused.json()),
            (403, json!({ "detail": detail })),
            "{method} {path}"
        );
    }
    assert!(channels.service.0.lock().restarts.is_empty());
    assert_eq!(
        stored(&channels, "telegram")["bot_token"],
        json!("1:canary")
    );
}
