//! Settings of the fake.

use std::time::Duration;

/// Settings of the fake.
#[derive(Debug, Clone)]
pub struct WeComOptions {
    /// Port; 0 selects a free one.
    pub port: u16,
    /// Id of the bot.
    pub bot_id: String,
    /// Secret of the bot.
    pub secret: String,
    /// `true` to enforce 30 messages per minute and 1,000 per hour in a conversation.
    pub rate_limits: bool,
    /// `true` to answer updates of expired streams with success, without showing them.
    pub silent_expiry: bool,
    /// Delay of each answer. During this time the frame is unanswered.
    pub answer_delay: Duration,
    /// Time for which each new connection receives the messages of persons again, also those that
    /// no bot was connected for. The platform never does that, so it is zero by default; a test
    /// of duplicates and of deaths sets it.
    pub redelivery: Duration,
}

impl Default for WeComOptions {
    fn default() -> Self {
        Self {
            port: 0,
            bot_id: "bot".to_owned(),
            secret: "secret".to_owned(),
            rate_limits: true,
            silent_expiry: false,
            answer_delay: Duration::from_millis(2),
            redelivery: Duration::ZERO,
        }
    }
}
