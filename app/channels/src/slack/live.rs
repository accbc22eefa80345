//! State of a live message, and the decisions about its next update.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::text::{escape, without_notifications};
use crate::markup::Part;

/// Age in milliseconds at which a stream is continued as an edited message, before Slack ends it.
const STREAM_AGE_MS: i64 = 270_000;
/// Maximum number of messages that replace a deleted live message.
const MAX_GENERATION: u8 = 3;

/// State of a live message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub(super) enum Live {
    /// Streamed message.
    Stream {
        /// Timestamp.
        ts: String,
        /// Bytes of the text so far.
        length: usize,
        /// Digest of the text so far.
        digest: String,
        /// Time of its start in milliseconds.
        started: i64,
        /// Digest of the mrkdwn of the whole text; empty if the stream shows less.
        #[serde(default)]
        rendered: String,
    },
    /// Edited message.
    Edit {
        /// Timestamp; `None` until a post is confirmed.
        ts: Option<String>,
        /// Key of the answer, from which the key of the post is derived.
        key: Uuid,
        /// Number of earlier messages that were deleted.
        #[serde(default)]
        generation: u8,
        /// `true` while the message may still be a stream.
        #[serde(default)]
        streaming: bool,
        /// Digest of the shown text.
        #[serde(default)]
        digest: String,
    },
    /// No more live updates.
    Off,
}

impl Live {
    /// Decodes a stored state; `None` without a live message.
    pub(super) fn decode(state: &Value) -> Option<Self> {
        if state.is_null() {
            return None;
        }
        Some(serde_json::from_value(state.clone()).unwrap_or(Self::Off))
    }

    /// Encodes a state for storage.
    pub(super) fn encode(state: Option<&Self>) -> Value {
        state
            .and_then(|state| serde_json::to_value(state).ok())
            .unwrap_or(Value::Null)
    }

    /// Returns the state of a stream that shows a text. `rendered` is the mrkdwn of the whole text.
    pub(super) fn stream(ts: String, text: &str, started: i64, rendered: Option<&str>) -> Self {
        Self::Stream {
            ts,
            length: text.len(),
            digest: digest(text),
            started,
            rendered: rendered.map(digest).unwrap_or_default(),
        }
    }

    /// Returns the state of an edited message that is not posted yet.
    pub(super) fn unposted(key: Uuid) -> Self {
        Self::Edit {
            ts: None,
            key,
            generation: 0,
            streaming: false,
            digest: String::new(),
        }
    }

    /// Returns the state in which a stream goes on as an edited message.
    pub(super) fn edited(ts: String, key: Uuid) -> Self {
        Self::Edit {
            ts: Some(ts),
            key,
            generation: 0,
            streaming: true,
            digest: String::new(),
        }
    }

    /// Returns the state after a live message was deleted.
    pub(super) fn replaced(key: Uuid, generation: u8) -> Self {
        if generation >= MAX_GENERATION {
            return Self::Off;
        }
        Self::Edit {
            ts: None,
            key,
            generation: generation + 1,
            streaming: false,
            digest: String::new(),
        }
    }
}

/// Returns the key of the post of a live message.
pub(super) fn post_key(key: Uuid, generation: u8) -> Uuid {
    Uuid::from_u128(key.as_u128() ^ u128::from(generation))
}

/// Returns a digest of a text.
pub(super) fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..16])
}

/// Next step of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StreamStep {
    /// The text is shown already.
    Nothing,
    /// Appends a suffix.
    Append(String),
    /// The text is no extension or the stream is too old: continues by editing.
    Edit,
}

/// Decides about the next step of a stream.
pub(super) fn stream_step(
    length: usize,
    shown: &str,
    started: i64,
    text: &str,
    now: i64,
) -> StreamStep {
    if now.saturating_sub(started) >= STREAM_AGE_MS {
        return StreamStep::Edit;
    }
    match suffix(length, shown, text) {
        Some("") => StreamStep::Nothing,
        Some(suffix) => StreamStep::Append(suffix.to_owned()),
        None => StreamStep::Edit,
    }
}

/// Returns the rest with which a stream becomes a final text, or `None` if the text must be edited
/// because it has markup or does not extend the stream.
pub(super) fn tail(length: usize, shown: &str, part: &Part) -> Option<String> {
    let rest = suffix(length, shown, &part.plain)?;
    let has_markup = part.markup != escape(&part.plain);
    let looks_like_markup = part
        .plain
        .contains(|letter| "*_~`[]#<>|\\&".contains(letter));
    (!has_markup && !looks_like_markup).then(|| rest.to_owned())
}

fn suffix<'a>(length: usize, shown: &str, text: &'a str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(length)?;
    (digest(start) == shown).then_some(rest)
}

/// Returns the Markdown that a stream shows: neutral, and cut so that it is within a final
/// message's limit.
pub(super) fn visible(markdown: &str, max: usize) -> String {
    let neutral = without_notifications(markdown, true);
    let mut used = 0;
    let end = neutral
        .char_indices()
        .find(|(_, character)| {
            used += match character {
                '&' => 5,
                '<' | '>' => 4,
                other => other.len_utf8(),
            };
            used > max
        })
        .map_or(neutral.len(), |(at, _)| at);
    neutral[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str, now: i64) -> StreamStep {
        stream_step(3, &digest("Hel"), 0, text, now)
    }

    #[test]
    fn extension_appends_the_new_suffix_only() {
        assert_eq!(step("Hello", 1), StreamStep::Append("lo".to_owned()));
        assert_eq!(step("Hel", 1), StreamStep::Nothing);
    }

    #[test]
    fn changed_or_old_stream_continues_by_editing() {
        for (text, now) in [
            ("Help", STREAM_AGE_MS),
            ("Hallo", 1),
            ("He", 1),
            ("", 1),
            ("Hé", 1),
        ] {
            assert_eq!(step(text, now), StreamStep::Edit, "{text}");
        }
    }

    #[test]
    fn plain_text_ends_a_stream_with_its_rest() {
        let part = |markup: &str, plain: &str| Part {
            markup: markup.to_owned(),
            plain: plain.to_owned(),
        };
        let shown = digest("Hel");
        let tail = |part: &Part| tail(3, &shown, part);
        assert_eq!(tail(&part("Hello", "Hello")), Some("lo".to_owned()));
        assert_eq!(tail(&part("Hel", "Hel")), Some(String::new()));
        assert_eq!(tail(&part("*Hello*", "Hello")), None);
        assert_eq!(tail(&part("Hello *you*", "Hello *you*")), None);
        assert_eq!(tail(&part("Bye", "Bye")), None);
    }

    #[test]
    fn visible_text_is_within_the_limit_after_escaping() {
        assert_eq!(visible("a&b<c", 6), "a&");
        assert_eq!(visible("ééé", 5), "éé");
        assert_eq!(visible("<!here>", 100), "&lt;!here>");
    }

    #[test]
    fn unknown_state_ends_live_updates() {
        assert_eq!(Live::decode(&Value::Null), None);
        assert_eq!(
            Live::decode(&serde_json::json!({"mode": "new"})),
            Some(Live::Off)
        );
        let state = Live::edited("1.2".to_owned(), Uuid::nil());
        assert_eq!(Live::decode(&Live::encode(Some(&state))), Some(state));
    }

    #[test]
    fn deleted_messages_are_replaced_three_times() {
        let key = Uuid::from_u128(8);
        assert!(matches!(
            Live::replaced(key, 2),
            Live::Edit { generation: 3, .. }
        ));
        assert_eq!(Live::replaced(key, 3), Live::Off);
        assert_ne!(post_key(key, 1), post_key(key, 0));
    }
}
