//! Messages to platforms.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::{Chat, ChatKind, Event, EventBody, Part};

/// Folder whose files may be sent.
pub(crate) const OUTPUTS: &str = "/mnt/user-data/outputs/";

/// Destination of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Workspace of the event that is answered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Chat.
    pub chat: Chat,
    /// Topic or thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Message that is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Person who is answered.
    pub person: String,
    /// [`Event::context`](super::Event::context) of the answered event.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}

impl Target {
    /// Returns the destination of replies to an event.
    pub fn of(event: &Event) -> Self {
        let (topic, reply_to) = match &event.body {
            // The id is empty if the message is one of a former chat.
            EventBody::Message(message) => {
                let id = Some(event.id.clone()).filter(|id| !id.is_empty());
                (message.topic.clone(), id)
            }
            EventBody::Press(press) => (None, press.message.clone()),
            EventBody::Stop { topic } => (topic.clone(), None),
            EventBody::Renamed { .. } => (None, None),
        };
        Self {
            workspace: event.workspace.clone(),
            chat: event.chat.clone(),
            topic,
            reply_to,
            person: event.sender.id.clone(),
            context: event.context.clone(),
        }
    }

    /// `true` for a chat of one person with the bot.
    pub fn is_direct(&self) -> bool {
        self.chat.kind == ChatKind::Direct
    }
}

/// Button of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    /// Label.
    pub label: String,
    /// ASCII text of at most 64 bytes that a press returns.
    pub data: String,
}

/// Content of a message. It is frozen when the message enters the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text in the platform's dialect.
    Text(Part),
    /// Text with buttons.
    Buttons {
        /// Text.
        text: Part,
        /// Buttons in order.
        buttons: Vec<Button>,
    },
    /// File from the outputs of a thread. The sender reads it and passes it as [`FileBody`].
    File {
        /// Owner of the thread.
        user_id: String,
        /// Thread.
        thread_id: String,
        /// Virtual path below the outputs.
        path: String,
    },
    /// Long text that is sent as a file.
    TextFile {
        /// File name.
        name: String,
        /// Text.
        text: String,
    },
}

/// Message in the outbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutgoingMessage {
    /// Destination.
    pub target: Target,
    /// Content.
    pub content: Content,
    /// State of the live message that this text completes; see [`LiveReply::state`].
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub live: Value,
    /// `true` for the last message of an answer.
    #[serde(default)]
    pub last: bool,
}

/// File that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileBody {
    /// Safe file name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Bytes.
    pub bytes: Bytes,
}

/// Durable circumstances of one message's delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Id of the message; the same in every attempt. Idempotency keys are derived from it.
    pub id: Uuid,
    /// Number of this attempt, from 1. From 2 on, an earlier attempt may have had its effect.
    pub attempt: u32,
    /// Results of earlier attempts, such as the id of an uploaded file. The adapter changes it;
    /// the sender stores it after a failed attempt.
    pub progress: Value,
}

/// Result of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sent {
    /// Ids of the sent messages on the platform; a reply to one of them finds the conversation.
    pub ids: Vec<String>,
}

/// Answer in progress on a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveReply {
    /// Id that is the same after a restart; idempotency keys are derived from it.
    pub key: Uuid,
    /// Destination.
    pub target: Target,
    /// Data of a stop button, if the platform can show one with the answer.
    pub stop: Option<Button>,
    /// State of the adapter: null until the live message exists. Its changes are stored, and the
    /// final message gets it back as [`OutgoingMessage::live`].
    pub state: Value,
    /// `true` if a live message may exist although `state` is null: the answer to its creation was
    /// lost, or an earlier process ended before it stored the state.
    pub may_exist: bool,
}

/// Sign that a platform shows at the received message or in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// The message was received.
    Received,
    /// The agent works.
    Working,
    /// The answer is complete.
    Done,
    /// The message could not be answered.
    Failed,
}
