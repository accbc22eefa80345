//! The bot as `getMe` describes it.

use serde_json::Value;

/// The bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Me {
    /// Id.
    pub(super) id: i64,
    /// User name without `@`; empty if the server names none.
    pub(super) username: String,
    /// `true` if the bot receives all messages of groups.
    pub(super) reads_groups: bool,
}

impl Me {
    /// Decodes the result of `getMe`.
    pub(super) fn decode(result: &Value) -> Option<Self> {
        let username = result["username"].as_str().unwrap_or_default();
        Some(Self {
            id: result["id"].as_i64()?,
            username: username.to_owned(),
            reads_groups: result["can_read_all_group_messages"]
                .as_bool()
                .unwrap_or(true),
        })
    }
}
