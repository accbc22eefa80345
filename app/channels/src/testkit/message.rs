//! Messages of the chat platform in memory, and their idempotency keys.

use serde_json::Value;
use uuid::Uuid;

/// Message that the bot sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryMessage {
    /// Id.
    pub id: String,
    /// Chat.
    pub chat: String,
    /// Current text, or the name of the file.
    pub text: String,
    /// Data of the buttons.
    pub buttons: Vec<String>,
    /// `true` once the text is final.
    pub is_final: bool,
    /// Number of texts that the message had.
    pub versions: usize,
}

/// Returns the idempotency key of the live message of an answer.
pub(super) fn live_key(row: Uuid) -> String {
    format!("live {row}")
}

/// Returns the idempotency key of the message that shows a prepared card.
pub(super) fn card_key(card: &Value) -> String {
    format!("card {card}")
}
