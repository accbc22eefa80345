//! Decoding of updates into events. Everything in an update is untrusted.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::platform::{Chat, ChatKind, ChatMessage, Event, EventBody, Press, Sender};

use super::attachment::attachments;
use super::me::Me;
use super::words::normalize;

/// Kinds of updates that the adapter asks for.
pub(super) const ALLOWED_UPDATES: &[&str] =
    &["message", "callback_query", "stopped_message_generation"];

/// Maximum length of the id of a press, in bytes. It becomes the id of an event.
const MAX_PRESS_ID: usize = 256;

/// Reason why an update is no valid event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    /// A required field is missing or has another type.
    #[error("the field {0} is missing or has a wrong type")]
    Field(&'static str),
    /// The kind of the update is unknown.
    #[error("the update has no known kind")]
    Kind,
    /// The update is no valid JSON.
    #[error("the update is not valid JSON")]
    Json,
    /// The update is nested too deeply.
    #[error("the update is nested too deeply")]
    Depth,
}

/// Decodes an update. `Ok(None)` stands for what the bot ignores, such as messages of bots.
pub(super) fn decode(
    update: &Value,
    me: &Me,
    now: DateTime<Utc>,
) -> Result<Option<Event>, DecodeError> {
    if let Some(message) = update.get("message") {
        decode_message(message, me, now)
    } else if let Some(query) = update.get("callback_query") {
        decode_press(query, now)
    } else if let Some(stopped) = update.get("stopped_message_generation") {
        let number = update["update_id"]
            .as_i64()
            .ok_or(DecodeError::Field("update_id"))?;
        decode_stop(stopped, number, now).map(Some)
    } else {
        Err(DecodeError::Kind)
    }
}

fn decode_message(
    message: &Value,
    me: &Me,
    now: DateTime<Utc>,
) -> Result<Option<Event>, DecodeError> {
    let id = int(message, "message_id")?;
    let Some(chat) = decode_chat(&message["chat"])? else {
        return Ok(None);
    };
    let at = message["date"]
        .as_i64()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or(now);
    let from = &message["from"];
    if let Some(to) = message["migrate_to_chat_id"].as_i64() {
        return Ok(Some(Event {
            id: format!("renamed:{id}"),
            workspace: String::new(),
            chat,
            sender: Sender {
                id: from["id"]
                    .as_i64()
                    .map(|id| id.to_string())
                    .unwrap_or_default(),
                name: None,
            },
            at,
            body: EventBody::Renamed { to: to.to_string() },
            context: Value::Null,
        }));
    }
    let Some(sender) = decode_sender(from)? else {
        return Ok(None);
    };
    let body = decode_body(message, &chat, me);
    Ok(body.map(|body| Event {
        id: id.to_string(),
        workspace: String::new(),
        chat,
        sender,
        at,
        body: EventBody::Message(body),
        context: Value::Null,
    }))
}

/// Decodes the content of a message; `None` for service messages and commands of other bots.
fn decode_body(message: &Value, chat: &Chat, me: &Me) -> Option<ChatMessage> {
    let text = ["text", "caption"]
        .iter()
        .find_map(|field| message[*field].as_str())
        .or_else(|| message["sticker"]["emoji"].as_str())
        .unwrap_or_default();
    let words = normalize(text, &me.username)?;
    let files = attachments(message);
    if text.is_empty() && files.is_empty() {
        return None;
    }
    let replied = replied_message(message);
    let replies_to_bot = replied.is_some_and(|replied| replied["from"]["id"] == json!(me.id));
    let addressed = chat.kind == ChatKind::Direct
        || words.names_bot
        || replies_to_bot
        || names_by_id(message, me.id);
    let topic = message["message_thread_id"]
        .as_i64()
        .filter(|_| message["is_topic_message"] == json!(true));
    Some(ChatMessage {
        text: words.text,
        files,
        topic: topic.map(|topic| topic.to_string()),
        reply_to: replied
            .and_then(|replied| replied["message_id"].as_i64())
            .map(|id| id.to_string()),
        album: message["media_group_id"].as_str().map(str::to_owned),
        addressed,
        cut: words.cut,
    })
}

/// Returns the message that a person replied to. Messages in a topic name the one that created the
/// topic, which is not a reply.
fn replied_message(message: &Value) -> Option<&Value> {
    message
        .get("reply_to_message")
        .filter(|replied| replied.get("forum_topic_created").is_none())
}

/// `true` if an entity names the bot by its id, as for bots without a user name.
fn names_by_id(message: &Value, bot: i64) -> bool {
    ["entities", "caption_entities"]
        .iter()
        .filter_map(|field| message[*field].as_array())
        .flatten()
        .any(|entity| entity["user"]["id"] == json!(bot))
}

fn decode_press(query: &Value, now: DateTime<Utc>) -> Result<Option<Event>, DecodeError> {
    let id = query["id"]
        .as_str()
        .filter(|id| (1..=MAX_PRESS_ID).contains(&id.len()))
        .ok_or(DecodeError::Field("id"))?;
    let Some(sender) = decode_sender(&query["from"])? else {
        return Ok(None);
    };
    // Without a message it is a press in another chat's inline result, which this bot has not.
    let Some(message) = query.get("message").filter(|message| !message.is_null()) else {
        return Ok(None);
    };
    let data = query["data"].as_str().ok_or(DecodeError::Field("data"))?;
    let chat = decode_chat(&message["chat"])?;
    Ok(chat.map(|chat| Event {
        id: format!("press:{id}"),
        workspace: String::new(),
        chat,
        sender,
        at: now,
        body: EventBody::Press(Press {
            data: data.to_owned(),
            message: message["message_id"].as_i64().map(|id| id.to_string()),
        }),
        context: json!({"callback": id}),
    }))
}

fn decode_stop(stopped: &Value, number: i64, now: DateTime<Utc>) -> Result<Event, DecodeError> {
    let chat = decode_chat(&stopped["chat"])?.ok_or(DecodeError::Field("chat"))?;
    let topic = stopped["message_thread_id"].as_i64();
    Ok(Event {
        id: format!("stop:{number}"),
        workspace: String::new(),
        // Drafts exist in private chats, whose id is that of the person.
        sender: Sender {
            id: chat.id.clone(),
            name: None,
        },
        chat,
        at: now,
        body: EventBody::Stop {
            topic: topic.map(|topic| topic.to_string()),
        },
        context: Value::Null,
    })
}

/// Decodes a chat; `None` for channels, which only publish.
fn decode_chat(chat: &Value) -> Result<Option<Chat>, DecodeError> {
    let id = int(chat, "id").map_err(|_| DecodeError::Field("chat.id"))?;
    let kind = match chat["type"].as_str() {
        Some("private") => ChatKind::Direct,
        Some("group" | "supergroup") => ChatKind::Group,
        Some("channel") => return Ok(None),
        _ => return Err(DecodeError::Field("chat.type")),
    };
    Ok(Some(Chat {
        id: id.to_string(),
        kind,
        parent: None,
    }))
}

/// Decodes a person; `None` for bots, anonymous administrators and channels.
fn decode_sender(from: &Value) -> Result<Option<Sender>, DecodeError> {
    if from.is_null() || from["is_bot"] == json!(true) {
        return Ok(None);
    }
    let id = int(from, "id").map_err(|_| DecodeError::Field("from.id"))?;
    let names: Vec<&str> = ["first_name", "last_name"]
        .iter()
        .filter_map(|field| from[*field].as_str())
        .collect();
    Ok(Some(Sender {
        id: id.to_string(),
        name: Some(names.join(" ")).filter(|name| !name.is_empty()),
    }))
}

fn int(value: &Value, field: &'static str) -> Result<i64, DecodeError> {
    value[field].as_i64().ok_or(DecodeError::Field(field))
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
