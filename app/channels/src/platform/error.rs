//! Errors of platforms and of the event sink.

use std::time::Duration;

/// Reason why a call of a platform failed. Texts never contain tokens or addresses with tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// Rate limit: nothing may be sent to this chat (or by this account) until the delay has
    /// passed.
    #[error("rate limited for {} s", retry_after.as_secs())]
    RateLimited {
        /// Delay that the platform named.
        retry_after: Duration,
        /// `true` if the limit is that of the account, not of the chat.
        account: bool,
    },
    /// The platform refused the call for good; a repetition would fail too.
    #[error("{0}")]
    Refused(String),
    /// The live message cannot be updated any more. The answer continues in a new message.
    #[error("live message expired: {0}")]
    LiveExpired(String),
    /// The platform could not be reached, failed, or its answer was lost; the call may have had its
    /// effect.
    #[error("{0}")]
    Unavailable(String),
    /// Another poller or connection of the same bot took over.
    #[error("{0}")]
    Displaced(String),
    /// The credentials are invalid or the bot is disabled. Reconnecting would not help.
    #[error("{0}")]
    Rejected(String),
    /// The sink refused events.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// Reason why an event was not stored. It must not be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// Too many messages wait. The listener keeps the event unacknowledged and tries again after a
    /// pause.
    #[error("the inbox is full")]
    Full,
    /// The store failed. The listener does not acknowledge and may continue.
    #[error("the inbox cannot be written")]
    Unavailable,
    /// This node no longer serves the account. The listener returns.
    #[error("another node serves the account")]
    Fenced,
}
