//! Properties of a fake.

/// Behaviour of a fake that a test selects.
#[derive(Debug, Clone)]
pub struct TelegramOptions {
    /// Port; 0 selects a free one.
    pub port: u16,
    /// Token of the bot; the digits before the colon are its id.
    pub token: String,
    /// User name of the bot.
    pub username: String,
    /// Enforces rate limits.
    pub rate_limits: bool,
    /// Has `sendMessageDraft`.
    pub drafts: bool,
    /// Counts drafts as messages.
    pub drafts_count: bool,
    /// Has `sendRichMessage`.
    pub rich_messages: bool,
    /// Withholds messages of groups that do not concern the bot.
    pub privacy_mode: bool,
    /// Refuses parameters that the method does not have.
    pub strict_parameters: bool,
    /// Webhook that is set at the start.
    pub webhook: Option<String>,
}

impl Default for TelegramOptions {
    fn default() -> Self {
        Self {
            port: 0,
            token: "123456:TEST-token_1".to_owned(),
            username: "deer_bot".to_owned(),
            rate_limits: true,
            drafts: true,
            drafts_count: true,
            rich_messages: true,
            privacy_mode: true,
            strict_parameters: true,
            webhook: None,
        }
    }
}
