//! Options of the fake.

use std::time::Duration;

/// Options of the fake.
#[derive(Debug, Clone)]
pub struct FeishuOptions {
    /// Id of the app.
    pub app_id: String,
    /// Secret of the app.
    pub app_secret: String,
    /// Open id of the bot.
    pub bot_open_id: String,
    /// Enforces rate limits.
    pub rate_limits: bool,
    /// Delays of redeliveries after the first delivery. After the last one an event is abandoned.
    pub redelivery: Vec<Duration>,
    /// Interval of pings in seconds.
    pub ping_interval: u64,
    /// Lifetime of a token in seconds.
    pub token_seconds: u64,
    /// Time after which streaming mode ends by itself.
    pub streaming: Duration,
    /// Number of edits of one message after which edits succeed without an effect.
    pub effective_edits: usize,
    /// Payloads above this size are sent in several frames.
    pub part_bytes: usize,
    /// `true` to route events to connections that ended without a close frame.
    pub ghosts: bool,
}

impl Default for FeishuOptions {
    fn default() -> Self {
        Self {
            app_id: "cli_a".to_owned(),
            app_secret: "secret".to_owned(),
            bot_open_id: "ou_bot".to_owned(),
            rate_limits: true,
            redelivery: [15, 300, 3600, 21_600].map(Duration::from_secs).to_vec(),
            ping_interval: 120,
            token_seconds: 7200,
            streaming: Duration::from_secs(600),
            effective_edits: 20,
            part_bytes: 64 * 1024,
            ghosts: false,
        }
    }
}
