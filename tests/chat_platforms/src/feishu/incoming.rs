//! Messages and presses of people, and their events.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shared::FeishuShared;
use super::world::{FeishuFile, FeishuMessage, now_ms};

/// Message of a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeishuIncoming {
    /// Chat.
    pub chat_id: String,
    /// Open id of the author.
    pub sender: String,
    /// `user`, or `app` for another bot.
    #[serde(default = "user")]
    pub sender_type: String,
    /// `true` for a direct chat.
    #[serde(default)]
    pub direct: bool,
    /// Kind.
    pub msg_type: String,
    /// Content.
    pub content: Value,
    /// Message that it replies to.
    #[serde(default)]
    pub parent_id: Option<String>,
    /// Topic.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// Mentions as in the event.
    #[serde(default)]
    pub mentions: Vec<Value>,
}

fn user() -> String {
    "user".to_owned()
}

impl FeishuIncoming {
    /// Creates a text in a direct chat.
    pub fn direct(chat: &str, sender: &str, text: &str) -> Self {
        Self {
            chat_id: chat.to_owned(),
            sender: sender.to_owned(),
            sender_type: user(),
            direct: true,
            msg_type: "text".to_owned(),
            content: json!({"text": text}),
            parent_id: None,
            thread_id: None,
            mentions: Vec::new(),
        }
    }

    /// Creates a text in a group.
    pub fn group(chat: &str, sender: &str, text: &str) -> Self {
        Self {
            direct: false,
            ..Self::direct(chat, sender, text)
        }
    }

    /// Adds a mention with the key that the text contains.
    #[must_use]
    pub fn mentioning(mut self, key: &str, open_id: &str, name: &str) -> Self {
        let mention = json!({"key": key, "id": {"open_id": open_id}, "name": name});
        self.mentions.push(mention);
        self
    }

    /// Sets the message to which it replies.
    #[must_use]
    pub fn replying_to(mut self, message: &str) -> Self {
        self.parent_id = Some(message.to_owned());
        self
    }
}

impl FeishuShared {
    /// Stores a message and queues its event.
    pub(super) fn write(&self, incoming: FeishuIncoming, with_event: bool) -> String {
        let (event, message_id) = {
            let mut world = self.world.lock();
            let number = world.number();
            let message_id = format!("om_{number}");
            world
                .chats
                .insert(incoming.chat_id.clone(), incoming.direct);
            let root_id = incoming.parent_id.as_ref().map(|parent| {
                let root = world
                    .messages
                    .get(parent)
                    .and_then(|found| found.root_id.clone());
                root.unwrap_or_else(|| parent.clone())
            });
            let message = FeishuMessage {
                message_id: message_id.clone(),
                chat_id: incoming.chat_id.clone(),
                sender: incoming.sender.clone(),
                by_bot: false,
                msg_type: incoming.msg_type.clone(),
                content: incoming.content.to_string(),
                parent_id: incoming.parent_id.clone(),
                root_id,
                thread_id: incoming.thread_id.clone(),
                create_time: now_ms(),
                mentions: incoming.mentions.clone(),
                reactions: Vec::new(),
                edits: 0,
                uuid: None,
                gone: None,
            };
            let event = message_event(&message, &incoming, &self.options.app_id, number);
            world.insert(message);
            (event, message_id)
        };
        if with_event {
            self.push(
                format!("m-{message_id}"),
                "event",
                event.to_string().into_bytes(),
            );
        }
        message_id
    }

    /// Queues the event of a stored message again.
    pub(super) fn repeat(&self, id: &str, incoming: &FeishuIncoming) {
        let (event, number) = {
            let mut world = self.world.lock();
            let number = world.number();
            let Some(message) = world.messages.get(id) else {
                return;
            };
            let event = message_event(message, incoming, &self.options.app_id, number);
            (event, number)
        };
        let payload = event.to_string().into_bytes();
        self.push(format!("m-{id}-{number}"), "event", payload);
    }

    /// Adds a file of a received message.
    pub(super) fn add_file(&self, message: &str, key: &str, file_type: &str, bytes: Bytes) {
        let file = FeishuFile {
            key: key.to_owned(),
            file_type: file_type.to_owned(),
            name: key.to_owned(),
            bytes,
            message_id: Some(message.to_owned()),
        };
        self.world.lock().files.insert(key.to_owned(), file);
    }

    /// Queues the event of a press.
    pub(super) fn press(&self, message: &str, user: &str, value: &Value, is_new: bool) {
        let (number, chat) = {
            let mut world = self.world.lock();
            let chat = world
                .messages
                .get(message)
                .map(|message| message.chat_id.clone());
            (world.number(), chat.unwrap_or_default())
        };
        let token = format!("c-{number}");
        let action = json!({"tag": "button", "value": value});
        let (kind, payload) = if is_new {
            let payload = json!({
                "schema": "2.0",
                "header": header("card.action.trigger", number, &self.options.app_id),
                "event": {
                    "operator": {"open_id": user, "tenant_key": "t1"},
                    "token": token, "action": action, "host": "im_message",
                    "context": {"open_message_id": message, "open_chat_id": chat},
                },
            });
            ("event", payload)
        } else {
            let payload = json!({
                "open_id": user, "open_message_id": message, "open_chat_id": chat,
                "tenant_key": "t1", "token": token, "action": action,
            });
            ("card", payload)
        };
        self.push(
            format!("m-press-{number}"),
            kind,
            payload.to_string().into_bytes(),
        );
    }
}

fn header(event_type: &str, number: u64, app_id: &str) -> Value {
    json!({
        "event_id": format!("event-{number}"), "event_type": event_type,
        "create_time": now_ms().to_string(), "token": "", "app_id": app_id, "tenant_key": "t1",
    })
}

fn message_event(
    message: &FeishuMessage,
    incoming: &FeishuIncoming,
    app_id: &str,
    number: u64,
) -> Value {
    let kind = if incoming.direct { "p2p" } else { "group" };
    let mut body = json!({
        "message_id": message.message_id, "create_time": message.create_time.to_string(),
        "chat_id": message.chat_id, "chat_type": kind, "message_type": message.msg_type,
        "content": message.content,
    });
    for (key, value) in [
        ("root_id", &message.root_id),
        ("parent_id", &message.parent_id),
        ("thread_id", &message.thread_id),
    ] {
        if let Some(value) = value {
            body[key] = json!(value);
        }
    }
    if !message.mentions.is_empty() {
        body["mentions"] = json!(message.mentions);
    }
    json!({
        "schema": "2.0",
        "header": header("im.message.receive_v1", number, app_id),
        "event": {
            "sender": {
                "sender_id": {"open_id": incoming.sender, "union_id": "on_1", "user_id": null},
                "sender_type": incoming.sender_type, "tenant_key": "t1",
            },
            "message": body,
        },
    })
}
