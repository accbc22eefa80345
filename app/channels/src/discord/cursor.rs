//! Cursor of a connection: its session, and the last message of each channel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ids::{is_id, is_newer};

/// Maximum number of channels whose last message is remembered.
const MAX_CHANNELS: usize = 200;

/// Session of the gateway that can be resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    /// Id.
    pub(super) session_id: String,
    /// Address for resuming.
    pub(super) resume_gateway_url: String,
    /// Sequence number of the last event that was handled.
    pub(super) seq: u64,
}

/// Cursor, stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// Session.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<Session>,
    /// User id of the bot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bot: Option<String>,
    /// Last message by channel.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) channels: BTreeMap<String, String>,
}

impl Cursor {
    /// Reads a cursor. An invalid one counts as absent.
    pub(super) fn parse(text: Option<&str>) -> Self {
        let Some(text) = text else {
            return Self::default();
        };
        let mut cursor: Self = serde_json::from_str(text).unwrap_or_else(|error| {
            tracing::warn!(%error, "the cursor is invalid, starting a new session");
            Self::default()
        });
        cursor
            .channels
            .retain(|channel, message| is_id(channel) && is_id(message));
        cursor
    }

    /// Returns the text to store.
    pub(super) fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok()
    }

    /// Remembers a message of a channel. Of too many channels the quietest one is forgotten.
    pub(super) fn note(&mut self, channel: &str, message: &str) {
        let last = self
            .channels
            .entry(channel.to_owned())
            .or_insert_with(|| message.to_owned());
        if is_newer(message, last) {
            message.clone_into(last);
        }
        if self.channels.len() > MAX_CHANNELS {
            let oldest = self
                .channels
                .iter()
                .min_by_key(|(_, message)| (message.len(), (*message).clone()))
                .map(|(channel, _)| channel.clone());
            if let Some(oldest) = oldest {
                self.channels.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_survives_its_text_form() {
        let mut cursor = Cursor {
            session: Some(Session {
                session_id: "s".to_owned(),
                resume_gateway_url: "wss://gateway.discord.gg".to_owned(),
                seq: 7,
            }),
            bot: Some("1".to_owned()),
            ..Cursor::default()
        };
        cursor.note("20", "300");
        cursor.note("20", "299");
        let text = cursor.text().unwrap();
        assert!(text.starts_with(r#"{"session_id":"s""#), "{text}");
        assert_eq!(Cursor::parse(Some(&text)), cursor);
        assert_eq!(cursor.channels["20"], "300");
        let without = Cursor::default();
        assert_eq!(Cursor::parse(without.text().as_deref()), without);
    }

    #[test]
    fn invalid_cursor_counts_as_absent() {
        for text in ["", "7", "{\"channels\":7}", "not json"] {
            assert_eq!(Cursor::parse(Some(text)), Cursor::default(), "{text}");
        }
        let cursor = Cursor::parse(Some(r#"{"channels":{"../x":"1","20":"y","21":"3"}}"#));
        assert_eq!(cursor.channels.len(), 1);
    }

    #[test]
    fn quietest_channel_is_forgotten() {
        let mut cursor = Cursor::default();
        for number in 0..250 {
            cursor.note(&number.to_string(), &(1000 + number).to_string());
        }
        assert_eq!(cursor.channels.len(), MAX_CHANNELS);
        assert!(!cursor.channels.contains_key("49"));
        assert!(cursor.channels.contains_key("50"));
    }
}
