//! Tests of the configuration of channels.

use serde_json::json;

use super::*;

fn read(channels: Value, connections: Value) -> ChannelsConfig {
    let map = |value: Value| value.as_object().cloned().unwrap_or_default();
    ChannelsConfig::read(&map(channels), &map(connections))
}

#[test]
fn channels_of_deerflow_are_read() {
    let config = read(
        json!({
            "langgraph_url": "http://localhost:8001/api",
            "gateway_url": "http://localhost:8001",
            "max_concurrency": 7,
            "session": {"assistant_id": "lead_agent", "config": {"recursion_limit": 80}},
            "telegram": {
                "enabled": true,
                "bot_token": "1:x",
                "allowed_users": [7, "8"],
                "session": {"users": {"7": {"assistant_id": "painter"}}},
            },
            "discord": {"enabled": false, "allowed_guilds": 5, "mention_only": true},
        }),
        json!({"enabled": true, "telegram": {"enabled": true, "bot_username": "bot"}, "slack": {"enabled": false}}),
    );
    assert_eq!(config.inert, ["langgraph_url", "gateway_url"]);
    let telegram = config.entry("telegram");
    assert!(telegram.enabled);
    assert_eq!(telegram.rules.allowed_users, ["7", "8"]);
    assert_eq!(telegram.rules.session[0].config["recursion_limit"], 80);
    let of_user = &telegram.rules.session[1].users["7"];
    assert_eq!(of_user.assistant_id.as_deref(), Some("painter"));
    assert!(telegram.rules.connections.require_bound_identity);
    assert_eq!(telegram.rules.max_concurrency, 7);
    assert_eq!(config.entry("wecom").rules.max_concurrency, 7);
    let discord = config.entry("discord");
    assert_eq!(discord.rules.allowed_guilds, ["5"]);
    assert!(!discord.enabled && discord.rules.mention_only);
    assert!(!discord.rules.connections.enabled);
    assert!(!config.connections.contains_key("slack"));
}

#[test]
fn values_of_wrong_types_count_as_absent() {
    let config = read(
        json!({"session": 3, "max_concurrency": 0, "slack": {"enabled": "yes", "allowed_users": {"a": 1}, "session": []}, "feishu": []}),
        json!({"enabled": 1, "slack": true}),
    );
    assert!(!config.connections_enabled);
    assert!(!config.entry("slack").enabled);
    assert!(config.entry("slack").rules.allowed_users.is_empty());
    assert!(!config.entry("feishu").enabled);
    assert_eq!(config.entry("feishu").rules.max_concurrency, 256);
}
