//! Acts of people: messages and presses, and the announced end of connections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::deliveries::{callback, deliver};
use super::links::Command;
use super::shared::Shared;
use super::workspace::{BOT_USER, Channel, ChannelKind, SlackMessage, TEAM};

/// Writes a message and delivers its events.
pub(super) fn speak(
    shared: &Arc<Shared>,
    channel: &str,
    user: &str,
    text: &str,
    thread: Option<String>,
    files: Vec<Value>,
) -> String {
    let (mut event, kind) = {
        let mut workspace = shared.workspace.lock();
        let ts = workspace.next_ts();
        let kind = if channel.starts_with('D') {
            ChannelKind::Im
        } else {
            ChannelKind::Channel
        };
        let found = workspace
            .channels
            .entry(channel.to_owned())
            .or_insert_with(|| Channel::new(kind));
        let mut message = SlackMessage::new(ts, user, text, thread);
        message.files = files;
        message.client_msg_id = Some(format!("c-{}", message.ts));
        let view = message.view(false);
        found.messages.push(message);
        (view, found.kind)
    };
    let ts = event["ts"].as_str().unwrap_or_default().to_owned();
    event["team"] = json!(TEAM);
    event["channel"] = json!(channel);
    event["event_ts"] = json!(ts);
    let mut mention = event.clone();
    event["channel_type"] = json!(kind.as_str());
    deliver(shared, "events_api", callback(event));
    if kind != ChannelKind::Im && text.contains(&format!("<@{BOT_USER}>")) {
        mention["type"] = json!("app_mention");
        deliver(shared, "events_api", callback(mention));
    }
    ts
}

/// Presses a button; `false` if the message has no such button.
pub(super) fn press(
    shared: &Arc<Shared>,
    channel: &str,
    ts: &str,
    value: &str,
    user: &str,
) -> bool {
    let (message, action, action_ts) = {
        let mut workspace = shared.workspace.lock();
        let action_ts = workspace.next_ts();
        let found = workspace
            .channels
            .get_mut(channel)
            .and_then(|found| found.message(ts));
        let Some(message) = found else {
            return false;
        };
        let elements = message
            .blocks
            .iter()
            .filter_map(|block| block["elements"].as_array());
        let Some(button) = elements.flatten().find(|element| element["value"] == value) else {
            return false;
        };
        (message.view(false), button.clone(), action_ts)
    };
    let mut action = action;
    action["block_id"] = json!("b1");
    action["action_ts"] = json!(action_ts);
    let payload = json!({
        "type": "block_actions",
        "user": {"id": user, "username": user, "name": user, "team_id": TEAM},
        "api_app_id": "A1",
        "token": "v",
        "container": {"type": "message", "message_ts": ts, "channel_id": channel,
            "thread_ts": message["thread_ts"], "is_ephemeral": false},
        "trigger_id": "1.2.3",
        "team": {"id": TEAM, "domain": "example"},
        "channel": {"id": channel, "name": "general"},
        "message": message,
        "response_url": format!("{}/response/1", shared.base),
        "actions": [action],
    });
    deliver(shared, "interactive", payload);
    true
}

/// Announces the end of every connection.
pub(super) fn disconnect(shared: &Shared, reason: &str) {
    let frame =
        json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}});
    shared.links.all(&Command::Text(frame.to_string()));
}
