//! Abilities and limits of a platform, as data.

use std::time::Duration;

use super::Dialect;

/// Unit in which a platform counts the length of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthUnit {
    /// UTF-16 code units.
    Utf16,
    /// Bytes of UTF-8.
    Utf8Bytes,
    /// Bytes of the text as a JSON string.
    JsonBytes,
}

impl LengthUnit {
    /// Returns the length of a text in this unit.
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Utf16 => text.encode_utf16().count(),
            Self::Utf8Bytes => text.len(),
            Self::JsonBytes => text.chars().map(json_bytes).sum(),
        }
    }
}

/// Returns the bytes of a character within a JSON string, as serde_json writes it.
fn json_bytes(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Maximum length of one message's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimit {
    /// Unit.
    pub unit: LengthUnit,
    /// Maximum number of units in the rendered text.
    pub max: usize,
}

/// Conversation of a group message that is in no topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupConversations {
    /// The root of its reply chain.
    ReplyChain,
    /// The whole chat.
    Chat,
}

/// Intervals of live updates of an answer in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePacing {
    /// Minimum interval between updates in a direct chat.
    pub direct: Duration,
    /// Minimum interval between updates in a group.
    pub group: Duration,
    /// Interval after which an unchanged text is sent again, if the platform needs it.
    pub keep_alive: Option<Duration>,
}

/// Rate limits that the sender obeys ahead of the platform's own refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Calls per second of the account.
    pub account_per_second: u32,
    /// Minimum interval between two calls for one chat.
    pub chat_interval: Duration,
    /// Maximum number of calls per minute for one group.
    pub group_per_minute: Option<u32>,
    /// `true` if a sign, see [`Receipt`](super::Receipt), is a call that counts toward
    /// `account_per_second`. Such a sign is omitted while half of the rate is in use. `false` if the
    /// platform limits signs by themselves, which the adapter obeys, or has none.
    pub counts_signs: bool,
}

/// Maximum sizes of files in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Received files.
    pub receive: u64,
    /// Sent files.
    pub send: u64,
}

/// Abilities and limits of a platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Abilities {
    /// Text dialect of its messages.
    pub dialect: Dialect,
    /// Maximum length of a message.
    pub text: TextLimit,
    /// Live updates; `None` if an answer is sent only when it is complete.
    pub live: Option<LivePacing>,
    /// Rate limits.
    pub rates: Rates,
    /// File sizes; `None` if files cannot be sent.
    pub files: Option<FileLimits>,
    /// `true` if messages can have buttons.
    pub buttons: bool,
    /// Interval after which [`Receipt::Working`](super::Receipt::Working) is repeated; `None` if the
    /// platform shows no activity.
    pub typing: Option<Duration>,
    /// Conversation of group messages.
    pub groups: GroupConversations,
    /// `true` if a message can only be sent while the account is connected.
    pub needs_connection: bool,
    /// `true` if the platform redelivers what was not acknowledged for longer than a node needs to
    /// recover, so that a full inbox may leave events unacknowledged.
    pub redelivers: bool,
}
