//! Events of platforms in one form.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a message's text in bytes; the rest is cut and the cut is noted.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Kind of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatKind {
    /// Chat of one person with the bot.
    Direct,
    /// Group or public room.
    Group,
}

/// Place of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chat {
    /// Id on the platform.
    pub id: String,
    /// Kind.
    pub kind: ChatKind,
    /// Parent room of a thread that is a chat of its own (Discord).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// Author of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sender {
    /// Id on the platform.
    pub id: String,
    /// Name for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// File of a message. It is downloaded when the message is handled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IncomingFile {
    /// Name as the sender chose it; unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Media type, if the platform names it; unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Size in bytes, if the platform names it; unchecked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Reference that the adapter's `download` understands.
    pub reference: Value,
}

/// Message of a person.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Text without the mention of the bot.
    pub text: String,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<IncomingFile>,
    /// Topic or thread that is a conversation of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Message to which it replies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// Id that the messages of an album share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub album: Option<String>,
    /// `true` if the message names the bot, replies to it, or is in a direct chat.
    #[serde(default)]
    pub addressed: bool,
    /// `true` if the text was longer than [`MAX_TEXT_BYTES`] and was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Press of a button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Press {
    /// Data of the button, see [`Button::data`](super::Button::data).
    pub data: String,
    /// Message with the button.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Content of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventBody {
    /// A person wrote.
    Message(ChatMessage),
    /// A person pressed a button.
    Press(Press),
    /// A person pressed the platform's own stop control of an answer in progress. `topic` is that
    /// of the answer, if the platform names it.
    Stop {
        /// Topic of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<String>,
    },
    /// The chat has a new id.
    Renamed {
        /// New id.
        to: String,
    },
}

/// Event of a platform. Everything in it is untrusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Id that a redelivery repeats, unique within the chat. Presses and other events have ids with
    /// the prefix of their kind, such as `press:`.
    pub id: String,
    /// Workspace, guild or tenant; empty if the platform has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub workspace: String,
    /// Chat.
    pub chat: Chat,
    /// Author.
    pub sender: Sender,
    /// Time of the event on the platform.
    pub at: DateTime<Utc>,
    /// Content.
    pub body: EventBody,
    /// Data for a reply, such as the id of a request; passed to the adapter in
    /// [`Target::context`](super::Target::context).
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub context: Value,
}
