//! Cursor: the time of the newest message of each chat, from which missed messages are listed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::platform::{ChatKind, Event, EventBody};

/// Maximum number of chats; the chat with the oldest message is dropped.
const MAX_CHATS: usize = 100;

/// Newest message of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SeenChat {
    /// Time in milliseconds since the epoch.
    #[serde(rename = "t")]
    pub(super) time: i64,
    /// `true` for direct chats.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_direct: bool,
}

/// Newest messages by chat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SeenChats(pub(super) BTreeMap<String, SeenChat>);

impl SeenChats {
    /// Reads a cursor; an invalid one is empty.
    pub(super) fn read(cursor: Option<&str>) -> Self {
        cursor
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// Returns the cursor for storage.
    pub(super) fn write(&self) -> Option<String> {
        (!self.0.is_empty())
            .then(|| serde_json::to_string(self).ok())
            .flatten()
    }

    /// Takes the times of messages.
    pub(super) fn observe(&mut self, events: &[Event]) {
        for event in events {
            if !matches!(event.body, EventBody::Message(_)) {
                continue;
            }
            let time = event.at.timestamp_millis();
            let is_direct = event.chat.kind == ChatKind::Direct;
            let seen = self
                .0
                .entry(event.chat.id.clone())
                .or_insert(SeenChat { time, is_direct });
            seen.time = seen.time.max(time);
            seen.is_direct = is_direct;
        }
        while self.0.len() > MAX_CHATS {
            let oldest = self
                .0
                .iter()
                .min_by_key(|(_, seen)| seen.time)
                .map(|(chat, _)| chat.clone());
            if let Some(oldest) = oldest {
                self.0.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::platform::{Chat, ChatMessage, Sender};

    fn message(chat: &str, time: i64) -> Event {
        Event {
            id: "om".to_owned(),
            workspace: String::new(),
            chat: Chat {
                id: chat.to_owned(),
                kind: ChatKind::Direct,
                parent: None,
            },
            sender: Sender {
                id: "ou".to_owned(),
                name: None,
            },
            at: DateTime::from_timestamp_millis(time).unwrap(),
            body: EventBody::Message(ChatMessage::default()),
            context: serde_json::Value::Null,
        }
    }

    #[test]
    fn newest_time_of_a_chat_is_kept() {
        let mut seen = SeenChats::read(Some(r#"{"oc_1":{"t":5}}"#));
        seen.observe(&[message("oc_1", 7), message("oc_1", 6)]);
        assert_eq!(seen.write().unwrap(), r#"{"oc_1":{"t":7,"d":true}}"#);
    }

    #[test]
    fn invalid_cursor_is_empty() {
        for cursor in [None, Some(""), Some("[]"), Some(r#"{"a":1}"#)] {
            assert_eq!(SeenChats::read(cursor), SeenChats::default());
        }
        assert_eq!(SeenChats::default().write(), None);
    }

    #[test]
    fn chats_beyond_the_limit_are_dropped_by_age() {
        let mut seen = SeenChats::default();
        for number in 0..150 {
            seen.observe(&[message(&format!("oc_{number}"), number)]);
        }
        assert_eq!(seen.0.len(), 100);
        assert!(!seen.0.contains_key("oc_49") && seen.0.contains_key("oc_50"));
    }
}
