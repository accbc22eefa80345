//! Events of the platform in the form of the port.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::content::{Mentions, parse};
use super::failure::number;
use crate::platform::{
    Chat, ChatKind, ChatMessage, Event, EventBody, MAX_NESTING, Press, Sender, cut_text, nesting,
};

/// Maximum length of an id, in bytes.
const MAX_ID: usize = 256;

/// Decodes the payload of a data frame. `None` for events that do not concern the bot.
///
/// # Errors
/// Text for the log if the payload is malformed.
pub(super) fn decode(
    payload: &[u8],
    bot: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<Event>, String> {
    let value = json_of(payload)?;
    match value["header"]["event_type"].as_str() {
        Some("im.message.receive_v1") => message(&value, bot, now),
        Some("card.action.trigger") => {
            let event = &value["event"];
            let context = &event["context"];
            let ids = [
                &context["open_message_id"],
                &context["open_chat_id"],
                &event["operator"]["open_id"],
            ];
            let header = &value["header"];
            let at = time(&header["create_time"], now);
            press(event, ids, &header["tenant_key"], at).map(Some)
        }
        Some(_) => Ok(None),
        None if value["action"].is_object() => {
            let ids = [
                &value["open_message_id"],
                &value["open_chat_id"],
                &value["open_id"],
            ];
            press(&value, ids, &value["tenant_key"], now).map(Some)
        }
        None => Err("the event has no type".to_owned()),
    }
}

/// Parses JSON of limited nesting.
fn json_of(payload: &[u8]) -> Result<Value, String> {
    if nesting(payload) > MAX_NESTING {
        return Err("the event is nested too deeply".to_owned());
    }
    serde_json::from_slice(payload).map_err(|error| format!("the event is not JSON: {error}"))
}

fn message(value: &Value, bot: Option<&str>, now: DateTime<Utc>) -> Result<Option<Event>, String> {
    let event = &value["event"];
    let sender = &event["sender"];
    if sender["sender_type"].as_str() != Some("user") {
        return Ok(None);
    }
    let ids = &sender["sender_id"];
    let person = ["open_id", "union_id", "user_id"]
        .into_iter()
        .find_map(|key| id(&ids[key]))
        .ok_or("the message has no sender")?;
    let message = &event["message"];
    let kind = match message["chat_type"].as_str() {
        Some("p2p") => ChatKind::Direct,
        Some(_) => ChatKind::Group,
        None => return Err("the message has no kind of chat".to_owned()),
    };
    let raw = RawMessage {
        message,
        kind: &message["message_type"],
        content: &message["content"],
        person,
        chat_kind: kind,
        workspace: &value["header"]["tenant_key"],
    };
    raw.event(bot, now)
}

/// Message of an event or of a list.
pub(super) struct RawMessage<'a> {
    /// Object with ids and mentions.
    pub(super) message: &'a Value,
    /// Kind of the content.
    pub(super) kind: &'a Value,
    /// JSON text with the content.
    pub(super) content: &'a Value,
    /// Author.
    pub(super) person: &'a str,
    /// Kind of the chat.
    pub(super) chat_kind: ChatKind,
    /// Tenant.
    pub(super) workspace: &'a Value,
}

impl RawMessage<'_> {
    /// Returns the event; `None` for messages of the system.
    pub(super) fn event(
        &self,
        bot: Option<&str>,
        now: DateTime<Utc>,
    ) -> Result<Option<Event>, String> {
        let message = self.message;
        let message_id = id(&message["message_id"]).ok_or("the message has no id")?;
        let chat = id(&message["chat_id"]).ok_or("the message has no chat")?;
        let kind = self.kind.as_str().ok_or("the message has no kind")?;
        if kind == "system" {
            return Ok(None);
        }
        let content = self.content.as_str().ok_or("the message has no content")?;
        // A forwarded message has a plain text as its content.
        let content = json_of(content.as_bytes()).or_else(|error| match kind {
            "merge_forward" => Ok(Value::Null),
            _ => Err(error),
        })?;
        let mentions = Mentions::read(&message["mentions"], bot);
        let parsed = parse(kind, &content, message_id, &mentions);
        let is_direct = self.chat_kind == ChatKind::Direct;
        let topic = id(&message["thread_id"]).filter(|_| !is_direct);
        let reply_to = id(&message["root_id"]).or_else(|| id(&message["parent_id"]));
        let (text, cut) = cut_text(parsed.text);
        Ok(Some(Event {
            id: message_id.to_owned(),
            workspace: id(self.workspace).unwrap_or_default().to_owned(),
            chat: Chat {
                id: chat.to_owned(),
                kind: self.chat_kind,
                parent: None,
            },
            sender: Sender {
                id: self.person.to_owned(),
                name: None,
            },
            at: time(&message["create_time"], now),
            body: EventBody::Message(ChatMessage {
                text,
                files: parsed.files,
                topic: topic.map(ToOwned::to_owned),
                reply_to: reply_to.map(ToOwned::to_owned),
                album: None,
                addressed: is_direct || mentions.bot,
                cut,
            }),
            context: Value::Null,
        }))
    }
}

fn press(
    event: &Value,
    [message, chat, person]: [&Value; 3],
    workspace: &Value,
    at: DateTime<Utc>,
) -> Result<Event, String> {
    let chat = id(chat).ok_or("the press has no chat")?;
    let person = id(person).ok_or("the press has no person")?;
    let value = &event["action"]["value"];
    let data = id(&value["d"]).ok_or("the pressed button has no data of this bot")?;
    let message = id(message);
    let kind = if value["k"].as_str() == Some("p2p") {
        ChatKind::Direct
    } else {
        ChatKind::Group
    };
    let key = match id(&event["token"]) {
        Some(token) => token.to_owned(),
        None => {
            let parts = json!([message, person, data]).to_string();
            hex::encode(Sha256::digest(parts.as_bytes()))
        }
    };
    Ok(Event {
        id: format!("press:{key}"),
        workspace: id(workspace).unwrap_or_default().to_owned(),
        chat: Chat {
            id: chat.to_owned(),
            kind,
            parent: None,
        },
        sender: Sender {
            id: person.to_owned(),
            name: None,
        },
        at,
        body: EventBody::Press(Press {
            data: data.to_owned(),
            message: message.map(ToOwned::to_owned),
        }),
        context: Value::Null,
    })
}

/// Returns a text that is not empty and not too long for an id.
pub(super) fn id(value: &Value) -> Option<&str> {
    value
        .as_str()
        .filter(|text| !text.is_empty() && text.len() <= MAX_ID)
}

/// Reads a time in milliseconds; larger numbers are microseconds. An invalid time, or one that is
/// more than a day ahead, is replaced by the current one.
fn time(value: &Value, now: DateTime<Utc>) -> DateTime<Utc> {
    const MICROSECONDS_FROM: i64 = 100_000_000_000_000;
    let time = match number(value) {
        Some(small @ 1..MICROSECONDS_FROM) => DateTime::from_timestamp_millis(small),
        Some(large @ MICROSECONDS_FROM..) => DateTime::from_timestamp_micros(large),
        _ => None,
    };
    time.filter(|time| *time - now < TimeDelta::days(1))
        .unwrap_or(now)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
