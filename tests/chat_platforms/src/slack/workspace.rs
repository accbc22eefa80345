//! State of the workspace: channels, messages and files.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::Failure;

/// Id of the bot's user.
pub(super) const BOT_USER: &str = "UBOT";
/// Id of the bot.
pub(super) const BOT_ID: &str = "B1";
/// Id of the team.
pub(super) const TEAM: &str = "T1";
/// Id of the app.
pub(super) const APP: &str = "A1";

/// Kind of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// Public channel.
    Channel,
    /// Private channel.
    Group,
    /// Direct chat.
    Im,
}

impl ChannelKind {
    /// Returns the text of `channel_type`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Group => "group",
            Self::Im => "im",
        }
    }

    /// Returns the scope that reads its history.
    pub(super) fn history_scope(self) -> &'static str {
        match self {
            Self::Channel => "channels:history",
            Self::Group => "groups:history",
            Self::Im => "im:history",
        }
    }
}

/// Stream of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Start.
    pub(super) started: Instant,
    /// `false` after `chat.stopStream`.
    pub(super) open: bool,
}

/// Message.
#[derive(Debug, Clone, Serialize)]
pub struct SlackMessage {
    /// Timestamp, which is the id.
    pub ts: String,
    /// Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_ts: Option<String>,
    /// Author.
    pub user: String,
    /// Text as it was sent, or the Markdown of a stream.
    pub text: String,
    /// Blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Value>,
    /// Files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Value>,
    /// Names of the bot's reactions.
    pub reactions: Vec<String>,
    /// Key of the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_msg_id: Option<String>,
    /// Metadata.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub metadata: Value,
    /// Number of updates.
    pub edits: usize,
    /// `true` if the bot deleted it.
    pub deleted: bool,
    /// Stream.
    #[serde(skip)]
    pub(super) stream: Option<Stream>,
}

impl SlackMessage {
    /// Returns a message.
    pub(super) fn new(ts: String, user: &str, text: &str, thread: Option<String>) -> Self {
        Self {
            ts,
            thread_ts: thread,
            user: user.to_owned(),
            text: text.to_owned(),
            blocks: Vec::new(),
            files: Vec::new(),
            reactions: Vec::new(),
            client_msg_id: None,
            metadata: Value::Null,
            edits: 0,
            deleted: false,
            stream: None,
        }
    }

    /// Returns `true` while the message streams.
    pub fn streaming(&self) -> bool {
        self.stream.is_some_and(|stream| stream.open)
    }

    /// Returns the message as the platform's answers contain it.
    pub(super) fn view(&self, with_metadata: bool) -> Value {
        let mut view =
            json!({"type": "message", "ts": self.ts, "user": self.user, "text": self.text});
        let mut set = |name: &str, value: Value| view[name] = value;
        if let Some(thread) = &self.thread_ts {
            set("thread_ts", json!(thread));
        }
        if self.user == BOT_USER {
            set("bot_id", json!(BOT_ID));
            set("app_id", json!(APP));
        }
        if !self.blocks.is_empty() {
            set("blocks", json!(self.blocks));
        }
        if !self.files.is_empty() {
            set("files", json!(self.files));
            set("subtype", json!("file_share"));
        }
        if with_metadata && !self.metadata.is_null() {
            set("metadata", self.metadata.clone());
        }
        if let Some(key) = self
            .client_msg_id
            .as_ref()
            .filter(|_| self.user != BOT_USER)
        {
            set("client_msg_id", json!(key));
        }
        view
    }
}

/// Channel.
#[derive(Debug)]
pub(super) struct Channel {
    /// Kind.
    pub(super) kind: ChannelKind,
    /// `true` if the bot is a member.
    pub(super) member: bool,
    /// `true` if it is archived.
    pub(super) archived: bool,
    /// Messages in the order of their timestamps.
    pub(super) messages: Vec<SlackMessage>,
}

impl Channel {
    /// Returns a channel with the bot as a member.
    pub(super) fn new(kind: ChannelKind) -> Self {
        Self {
            kind,
            member: true,
            archived: false,
            messages: Vec::new(),
        }
    }

    /// Returns a message that is not deleted.
    pub(super) fn message(&mut self, ts: &str) -> Option<&mut SlackMessage> {
        self.messages
            .iter_mut()
            .find(|message| message.ts == ts && !message.deleted)
    }
}

/// File.
#[derive(Debug, Clone)]
pub struct SlackFile {
    /// Name.
    pub name: String,
    /// Media type.
    pub media_type: String,
    /// Size that was announced.
    pub size: usize,
    /// Bytes, once uploaded.
    pub bytes: Option<Bytes>,
    /// Channels to which it was shared.
    pub channels: Vec<String>,
}

/// Workspace.
#[derive(Debug)]
pub(super) struct Workspace {
    /// Channels by id.
    pub(super) channels: BTreeMap<String, Channel>,
    /// Files by id.
    pub(super) files: BTreeMap<String, SlackFile>,
    last: u64,
}

impl Workspace {
    /// Returns a workspace with the channels `C1`, `C2` and `G1`.
    pub(super) fn new() -> Self {
        let channels = [
            ("C1", ChannelKind::Channel),
            ("C2", ChannelKind::Channel),
            ("G1", ChannelKind::Group),
        ];
        Self {
            channels: channels
                .map(|(id, kind)| (id.to_owned(), Channel::new(kind)))
                .into(),
            files: BTreeMap::new(),
            last: 0,
        }
    }

    /// Returns the next timestamp.
    pub(super) fn next_ts(&mut self) -> String {
        #[expect(
            clippy::disallowed_methods,
            reason = "a fake is a program of its own, without a clock port"
        )]
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |age| age.as_micros() as u64);
        self.last = now.max(self.last + 1);
        format!("{}.{:06}", self.last / 1_000_000, self.last % 1_000_000)
    }

    /// Returns the channel of a call.
    pub(super) fn channel(&mut self, id: &str) -> Result<&mut Channel, Failure> {
        let found = self.channels.get_mut(id);
        found.ok_or_else(|| Failure::new("channel_not_found"))
    }

    /// Returns the channel of a call that writes.
    pub(super) fn writable(&mut self, id: &str) -> Result<&mut Channel, Failure> {
        let channel = self.channel(id)?;
        if channel.archived {
            return Err(Failure::new("is_archived"));
        }
        if !channel.member {
            return Err(Failure::new("not_in_channel"));
        }
        Ok(channel)
    }
}
