//! Messages of the chat platform in memory.

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
