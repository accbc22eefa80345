//! Channels and messages.

use std::collections::{BTreeMap, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Id of the bot and of its application.
pub const BOT: u64 = 1;
/// Id of the guild.
pub const GUILD: u64 = 1000;
/// Id of the guild's text channel.
pub const CHANNEL: u64 = 20;
/// Id of the direct channel of [`PERSON`] and the bot.
pub const DIRECT: u64 = 10;
/// Id of a person.
pub const PERSON: u64 = 7;

/// First id that is given away.
const FIRST_ID: u64 = 1_400_000_000_000_000_000;
/// Discord's epoch in milliseconds.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// Kind of a text channel in a guild.
pub(super) const TEXT: u8 = 0;
/// Kind of a direct channel.
pub(super) const DM: u8 = 1;
/// Kind of a public thread.
pub(super) const THREAD: u8 = 11;

/// Channel.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    pub(super) id: u64,
    pub(super) kind: u8,
    pub(super) guild: Option<u64>,
    pub(super) parent: Option<u64>,
    pub(super) name: String,
}

impl Channel {
    /// Returns the channel as the API shows it.
    pub(super) fn shown(&self) -> Value {
        let mut shown = json!({"id": self.id.to_string(), "type": self.kind});
        if let Some(guild) = self.guild {
            shown["guild_id"] = json!(guild.to_string());
            shown["name"] = json!(self.name);
            shown["position"] = json!(0);
            shown["permission_overwrites"] = json!([]);
            shown["nsfw"] = json!(false);
            shown["parent_id"] = json!(self.parent.map(|id| id.to_string()));
        } else {
            shown["recipients"] = json!([user(PERSON, "ann", false)]);
        }
        if self.kind == THREAD {
            shown["owner_id"] = json!(BOT.to_string());
            shown["thread_metadata"] = json!({
                "archived": false, "auto_archive_duration": 1440,
                "archive_timestamp": "2026-11-23T00:00:00+00:00", "locked": false,
            });
            shown["message_count"] = json!(0);
            shown["member_count"] = json!(1);
        }
        shown
    }
}

/// File of a person's message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attachment {
    /// File name.
    pub filename: String,
    /// Bytes in base64.
    pub base64: String,
}

/// Message that a person writes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct PersonMessage {
    /// Channel; an unknown one is created.
    pub channel: u64,
    /// `false` to create an unknown channel as a direct one.
    pub in_guild: bool,
    /// Author.
    pub author: u64,
    /// Name of the author.
    pub name: String,
    /// `true` if the author is another bot.
    pub bot: bool,
    /// Text; `<@1>` mentions the bot.
    pub text: String,
    /// Message to which it replies.
    pub reply_to: Option<u64>,
    /// Files.
    pub attachments: Vec<Attachment>,
}

impl Default for PersonMessage {
    fn default() -> Self {
        Self {
            channel: CHANNEL,
            in_guild: true,
            author: PERSON,
            name: "ann".to_owned(),
            bot: false,
            text: String::new(),
            reply_to: None,
            attachments: Vec::new(),
        }
    }
}

impl PersonMessage {
    /// Creates a message with a text in a channel.
    pub fn new(channel: u64, text: impl Into<String>) -> Self {
        Self {
            channel,
            in_guild: channel != DIRECT,
            text: text.into(),
            ..Self::default()
        }
    }
}

/// Returns a user as the API shows it.
pub(super) fn user(id: u64, name: &str, bot: bool) -> Value {
    json!({
        "id": id.to_string(), "username": name, "discriminator": "0", "global_name": null,
        "avatar": null, "bot": bot,
    })
}

/// Channels, messages and files.
#[derive(Debug)]
pub(super) struct Rooms {
    pub(super) channels: BTreeMap<u64, Channel>,
    pub(super) messages: BTreeMap<u64, Value>,
    /// Message by channel and nonce.
    pub(super) nonces: HashMap<(u64, String), u64>,
    /// Bytes by attachment id.
    pub(super) files: HashMap<u64, Vec<u8>>,
    /// Reactions: message and emoji.
    pub(super) reactions: Vec<(u64, String)>,
    given: u64,
}

impl Rooms {
    /// Creates the guild with its channel, and the direct channel.
    pub(super) fn new() -> Self {
        let mut rooms = Self {
            channels: BTreeMap::new(),
            messages: BTreeMap::new(),
            nonces: HashMap::new(),
            files: HashMap::new(),
            reactions: Vec::new(),
            given: 0,
        };
        rooms.open(CHANNEL, true);
        rooms.open(DIRECT, false);
        rooms
    }

    /// Returns a new id.
    pub(super) fn id(&mut self) -> u64 {
        self.given += 1;
        FIRST_ID + (self.given << 22)
    }

    /// Creates a channel unless it exists.
    pub(super) fn open(&mut self, id: u64, in_guild: bool) {
        self.channels.entry(id).or_insert_with(|| Channel {
            id,
            kind: if in_guild { TEXT } else { DM },
            guild: in_guild.then_some(GUILD),
            parent: None,
            name: format!("room-{id}"),
        });
    }

    /// Creates a message and returns it as the API shows it.
    pub(super) fn post(&mut self, channel: u64, author: Value, content: &str) -> Value {
        let id = self.id();
        let message = json!({
            "id": id.to_string(), "channel_id": channel.to_string(), "author": author,
            "content": content, "timestamp": time_of(id), "edited_timestamp": null, "tts": false,
            "mention_everyone": false, "mentions": [], "mention_roles": [], "attachments": [],
            "embeds": [], "components": [], "pinned": false, "type": 0,
        });
        self.messages.insert(id, message.clone());
        message
    }

    /// Stores a person's message and returns the event of the gateway.
    pub(super) fn write(&mut self, message: &PersonMessage, base: &str) -> Value {
        self.open(message.channel, message.in_guild);
        let author = user(message.author, &message.name, message.bot);
        let mut event = self.post(message.channel, author, &message.text);
        if message.text.contains("<@1>") || message.text.contains("<@!1>") {
            event["mentions"] = json!([user(BOT, "bot", true)]);
        }
        if let Some(target) = message.reply_to {
            event["type"] = json!(19);
            event["message_reference"] = json!({
                "message_id": target.to_string(), "channel_id": message.channel.to_string(),
            });
            event["referenced_message"] =
                self.messages.get(&target).cloned().unwrap_or(Value::Null);
        }
        let files: Vec<Value> = message
            .attachments
            .iter()
            .map(|file| self.attach(&file.filename, &file.base64, base))
            .collect();
        event["attachments"] = json!(files);
        if let Some(id) = id_of(&event["id"]) {
            self.messages.insert(id, event.clone());
        }
        if let Some(guild) = self.channels.get(&message.channel).and_then(|c| c.guild) {
            event["guild_id"] = json!(guild.to_string());
            event["member"] = json!({
                "roles": [], "joined_at": "2026-11-23T00:00:00+00:00", "deaf": false,
                "mute": false, "flags": 0,
            });
        }
        event
    }

    /// Stores a file and returns it as the API shows it.
    pub(super) fn attach(&mut self, filename: &str, base64: &str, base: &str) -> Value {
        let id = self.id();
        let bytes = STANDARD.decode(base64).unwrap_or_default();
        let shown = json!({
            "id": id.to_string(), "filename": filename, "size": bytes.len(),
            "content_type": "application/octet-stream",
            "url": format!("{base}/attachments/{id}/{filename}?ex=1&is=2&hm=3"),
            "proxy_url": format!("{base}/attachments/{id}/{filename}"),
        });
        self.files.insert(id, bytes);
        shown
    }
}

/// Reads an id from a JSON text.
pub(super) fn id_of(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// Returns the time that an id contains.
fn time_of(id: u64) -> String {
    let ms = (id >> 22) + EPOCH_MS;
    DateTime::from_timestamp_millis(i64::try_from(ms).unwrap_or_default())
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Micros, false)
}
