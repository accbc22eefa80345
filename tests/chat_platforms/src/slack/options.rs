//! Options of the fake of Slack.

use std::time::Duration;

/// Answer to a `client_msg_id` that was sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateAnswer {
    /// Success with the message that exists.
    Existing,
    /// The error `duplicate_message_not_found`.
    NotFound,
    /// The id has no meaning: the message is posted again.
    Ignored,
}

/// Options of [`SlackFake`](super::SlackFake).
#[derive(Debug, Clone)]
pub struct SlackOptions {
    /// Port; 0 selects a free one.
    pub port: u16,
    /// Token of the bot.
    pub bot_token: String,
    /// Token of the app, for Socket Mode.
    pub app_token: String,
    /// Scopes of the bot's token.
    pub scopes: Vec<String>,
    /// `true` to enforce rate limits.
    pub rate_limits: bool,
    /// Time within which an envelope must be acknowledged.
    pub ack_timeout: Duration,
    /// Delays of the redeliveries of an envelope that was not acknowledged.
    pub redelivery: Vec<Duration>,
    /// Interval of the pings of the server.
    pub ping_interval: Duration,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Age at which a stream ends by itself.
    pub stream_lifetime: Duration,
    /// Methods that answer `unknown_method`.
    pub unknown_methods: Vec<String>,
    /// Answer to a repeated `client_msg_id`.
    pub duplicates: DuplicateAnswer,
}

impl Default for SlackOptions {
    fn default() -> Self {
        let scopes = [
            "app_mentions:read",
            "channels:history",
            "channels:read",
            "chat:write",
            "files:read",
            "files:write",
            "groups:history",
            "im:history",
            "mpim:history",
            "reactions:write",
        ];
        Self {
            port: 0,
            bot_token: "xoxb-1".to_owned(),
            app_token: "xapp-1".to_owned(),
            scopes: scopes.map(str::to_owned).to_vec(),
            rate_limits: true,
            ack_timeout: Duration::from_secs(3),
            redelivery: [0, 60, 300].map(Duration::from_secs).to_vec(),
            ping_interval: Duration::from_secs(5),
            max_connections: 10,
            stream_lifetime: Duration::from_secs(300),
            unknown_methods: Vec::new(),
            duplicates: DuplicateAnswer::Existing,
        }
    }
}
