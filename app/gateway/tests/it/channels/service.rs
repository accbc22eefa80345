//! State and restart of the channel service.

use deerflow_domain::channels::ChannelRuntimeError;
use serde_json::json;

use super::Channels;
use crate::support::Gateway;

#[tokio::test]
async fn state_of_all_channels_is_at_the_address_with_a_slash() {
    let channels = Channels::new();
    for prefix in ["/api", "/api/langgraph"] {
        let path = format!("{prefix}/channels");
        let redirect = channels.gateway.get(&format!("{path}?a=b")).await;
        assert_eq!(
            (redirect.code(), redirect.header("location")),
            (307, format!("{path}/?a=b").as_str())
        );
        assert_eq!(
            channels.gateway.get(&format!("{path}/")).await.json(),
            json!({ "service_running": true, "channels": {
                "telegram": { "enabled": true, "running": true },
                "slack": { "enabled": true, "running": false },
                "discord": { "enabled": true, "running": true },
                "wechat": { "enabled": true, "running": false },
            } })
        );
    }
}

#[tokio::test]
async fn restart_reports_its_outcome() {
    let channels = Channels::new();
    let restart = async |name: &str| {
        let path = format!("/api/channels/{name}/restart");
        let response = channels.gateway.send("POST", &path, None).await;
        (response.code(), response.json())
    };
    assert_eq!(
        restart("telegram").await,
        (
            200,
            json!({ "success": true, "message": "Channel telegram restarted successfully" })
        )
    );
    assert_eq!(channels.service.0.lock().restarts, ["telegram"]);
    let failed = |name: &str| {
        let message = format!("Failed to restart channel {name}");
        (200, json!({ "success": false, "message": message }))
    };
    assert_eq!(restart("unknown").await, failed("unknown"));
    let refusal = ChannelRuntimeError::Refused("no token".to_owned());
    channels.service.0.lock().refusal = Some(refusal);
    assert_eq!(restart("telegram").await, failed("telegram"));
    channels.service.0.lock().is_stopped = true;
    assert_eq!(
        restart("telegram").await,
        (503, json!({ "detail": "Channel service is not running" }))
    );
}

#[tokio::test]
async fn process_without_channels_reports_it() {
    let gateway = Gateway::new();
    assert_eq!(
        gateway.get("/api/channels/").await.json(),
        json!({ "service_running": false, "channels": {} })
    );
    let restarted = gateway
        .send("POST", "/api/channels/telegram/restart", None)
        .await;
    assert_eq!(restarted.code(), 503);
    let connected = gateway
        .send("POST", "/api/channels/telegram/connect", None)
        .await;
    assert_eq!(
        (connected.code(), connected.json()),
        (400, json!({ "detail": "Channel connections are disabled" }))
    );
}
