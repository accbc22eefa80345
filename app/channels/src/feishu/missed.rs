//! List of messages that arrived while no client was connected.

use http::Method;
use serde_json::{Value, json};

use super::api::{ApiBody, ApiCall, FeishuApi};
use super::cursor::{SeenChat, SeenChats};
use super::decode::{RawMessage, id};
use super::failure::FeishuFailure;
use crate::platform::{ChatKind, Event, EventBody};

/// Maximum number of chats that are listed after a reconnection.
const MAX_CHATS: usize = 50;
/// Maximum number of pages of a chat.
const MAX_PAGES: usize = 4;
/// Age beyond which missed messages are not answered any more, in milliseconds.
const MAX_AGE_MS: i64 = 24 * 3600 * 1000;
/// Messages of a page.
const PAGE_SIZE: &str = "50";

/// Lists messages since the cursor, those of the most active chats first. Failures end the list:
/// the platform redelivers events too.
pub(super) async fn missed(api: &FeishuApi, seen: &SeenChats, bot: Option<&str>) -> Vec<Event> {
    let mut chats: Vec<(&String, &SeenChat)> = seen.0.iter().collect();
    chats.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.time));
    let mut events = Vec::new();
    for (chat, seen) in chats.into_iter().take(MAX_CHATS) {
        match list(api, chat, *seen, bot, &mut events).await {
            Ok(()) => {}
            Err(FeishuFailure::TargetGone(_)) => {}
            Err(failure) => {
                tracing::info!(%chat, ?failure, "missed messages cannot be listed");
                break;
            }
        }
    }
    events.sort_by_key(|event| event.at);
    events
}

async fn list(
    api: &FeishuApi,
    chat: &str,
    seen: SeenChat,
    bot: Option<&str>,
    events: &mut Vec<Event>,
) -> Result<(), FeishuFailure> {
    let since = seen.time.max(api.now_ms().saturating_sub(MAX_AGE_MS));
    let mut page_token = None;
    for _ in 0..MAX_PAGES {
        let path = ["im", "v1", "messages"];
        let mut call = ApiCall::new(Method::GET, &path, ApiBody::Empty)
            .with("container_id_type", "chat")
            .with("container_id", chat)
            .with("start_time", (since / 1000).to_string())
            .with("sort_type", "ByCreateTimeAsc")
            .with("page_size", PAGE_SIZE);
        if let Some(token) = page_token.take() {
            call = call.with("page_token", token);
        }
        let answer = api.call(&call).await?;
        let data = &answer["data"];
        let items = data["items"].as_array().map(Vec::as_slice);
        for item in items.unwrap_or_default() {
            let event = event_of(item, chat, seen.is_direct, bot, api);
            // The list begins at a full second.
            events.extend(event.filter(|event| event.at.timestamp_millis() > since));
        }
        match id(&data["page_token"]) {
            Some(token) if data["has_more"] == json!(true) => page_token = Some(token.to_owned()),
            _ => break,
        }
    }
    Ok(())
}

/// Decodes a listed message. In groups only those that mention the bot are taken, because only
/// those are delivered as events.
fn event_of(
    item: &Value,
    chat: &str,
    is_direct: bool,
    bot: Option<&str>,
    api: &FeishuApi,
) -> Option<Event> {
    let sender = &item["sender"];
    if sender["sender_type"].as_str() != Some("user") || item["deleted"] == json!(true) {
        return None;
    }
    let mut item = item.clone();
    item["chat_id"] = json!(chat);
    let raw = RawMessage {
        message: &item,
        kind: &item["msg_type"],
        content: &item["body"]["content"],
        person: id(&item["sender"]["id"])?,
        chat_kind: if is_direct {
            ChatKind::Direct
        } else {
            ChatKind::Group
        },
        workspace: &item["sender"]["tenant_key"],
    };
    let event = raw.event(bot, api.now()).ok()??;
    let is_addressed = matches!(&event.body, EventBody::Message(message) if message.addressed);
    is_addressed.then_some(event)
}
