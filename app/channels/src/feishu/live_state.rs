//! Durable state of an answer in progress.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Growth of a sequence after a refusal. It exceeds the updates of a process that died before its
/// state was stored.
const JUMP: i64 = 1000;
/// Age at which streaming mode is switched on again, in milliseconds. It ends after 10 minutes.
const STREAMING_MS: i64 = 9 * 60 * 1000 + 30_000;
/// Number of live edits of one message. Users report that edits have no effect after 20 to 30.
const MAX_EDITS: u32 = 18;
/// Growth of the interval between edits, in milliseconds.
const EDIT_STEP_MS: i64 = 500;
/// Number of messages for one answer after which no other is begun.
const MAX_GENERATIONS: u32 = 3;

/// Streaming card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StreamingCard {
    /// Card.
    pub(super) card: String,
    /// Message that shows it, once it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Last sequence.
    #[serde(default)]
    pub(super) sequence: i64,
    /// Time at which streaming mode was switched on, in milliseconds since the epoch.
    #[serde(default)]
    pub(super) opened_ms: i64,
    /// `true` while the card has a stop button.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) has_stop: bool,
}

/// Card that is patched as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PatchedCard {
    /// Message.
    pub(super) message: String,
    /// Edits so far.
    #[serde(default)]
    pub(super) edits: u32,
    /// Time of the last edit, in milliseconds since the epoch.
    #[serde(default)]
    pub(super) edited_ms: i64,
    /// Number of the message for this answer.
    #[serde(default)]
    pub(super) generation: u32,
}

/// State of a live message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "way", rename_all = "snake_case")]
pub(super) enum LiveCard {
    /// CardKit.
    Streaming(StreamingCard),
    /// PATCH of the message.
    Patched(PatchedCard),
}

impl LiveCard {
    /// Reads a state; `None` if there is no live message.
    pub(super) fn read(state: &Value) -> Option<Self> {
        Self::deserialize(state).ok()
    }

    /// Returns the state for storage.
    pub(super) fn write(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl StreamingCard {
    /// Takes the next sequence.
    pub(super) fn next(&mut self) -> i64 {
        self.sequence = self.sequence.saturating_add(1).min(i64::from(i32::MAX));
        self.sequence
    }

    /// Passes the sequences that another process may have used.
    pub(super) fn jump(&mut self) {
        self.sequence = self.sequence.saturating_add(JUMP);
    }

    /// `true` if streaming mode is about to end by itself.
    pub(super) fn is_ending(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.opened_ms) >= STREAMING_MS
    }
}

impl PatchedCard {
    /// Returns the state of a message that was sent just now.
    pub(super) fn sent(message: String, generation: u32, now_ms: i64) -> Self {
        Self {
            message,
            edits: 0,
            edited_ms: now_ms,
            generation,
        }
    }

    /// `true` if a live edit may be made. The intervals grow so that long answers do not use up the
    /// edits of a message.
    pub(super) fn may_edit(&self, now_ms: i64) -> bool {
        let interval = EDIT_STEP_MS * i64::from(self.edits.min(MAX_EDITS));
        self.edits < MAX_EDITS && now_ms.saturating_sub(self.edited_ms) >= interval
    }

    /// Returns the number of the next message for this answer, if one may be begun.
    pub(super) fn next_generation(&self) -> Option<u32> {
        (self.generation + 1 < MAX_GENERATIONS).then_some(self.generation + 1)
    }
}

/// Returns an idempotency key of 32 characters that follows from its parts.
pub(super) fn derived_key(key: Uuid, purpose: &str) -> String {
    let digest = Sha256::digest(format!("{key} {purpose}").as_bytes());
    hex::encode(&digest[..16])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_states_are_no_live_message() {
        for state in [json!(null), json!({}), json!([1]), json!({"way": "other"})] {
            assert_eq!(LiveCard::read(&state), None);
        }
        let card = LiveCard::Patched(PatchedCard::sent("om_1".to_owned(), 1, 5));
        assert_eq!(LiveCard::read(&card.write()), Some(card));
    }

    #[test]
    fn edits_become_rare_and_end() {
        let mut card = PatchedCard::sent("om_1".to_owned(), 0, 0);
        let mut times = Vec::new();
        for now in (0..200_000).step_by(100) {
            if card.may_edit(now) {
                card.edits += 1;
                card.edited_ms = now;
                times.push(now);
            }
        }
        assert_eq!(times.len(), 18);
        assert_eq!(times[..4], [0, 500, 1500, 3000]);
    }

    #[test]
    fn sequence_grows_without_overflow() {
        let mut card = StreamingCard {
            card: "1".to_owned(),
            message: None,
            sequence: i64::MAX,
            opened_ms: 0,
            has_stop: false,
        };
        card.jump();
        assert_eq!(card.next(), i64::from(i32::MAX));
        assert!(card.is_ending(i64::MAX));
    }
}
