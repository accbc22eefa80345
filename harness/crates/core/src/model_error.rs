//! Errors of model calls, in classes that decide whether a call is retried.

use std::time::Duration;

/// Class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The quota or credit is used up. Not retried.
    Quota,
    /// The key is wrong or missing, or permission is denied. Not retried.
    Auth,
    /// Short-term rate limit. Retried at most once.
    Burst,
    /// The provider is overloaded. Retried.
    Busy,
    /// The connection or the provider failed temporarily. Retried.
    Transient,
    /// The stream delivered no data for too long. Retried at most once.
    Stalled,
    /// The provider rejected the content of the request. Not retried.
    BadRequest,
    /// The entry cannot work as configured. Not retried.
    Config,
}

impl ModelErrorKind {
    /// Reports whether a retry may help.
    pub fn is_retriable(self) -> bool {
        matches!(
            self,
            Self::Burst | Self::Busy | Self::Transient | Self::Stalled
        )
    }

    /// Returns the value for `error_reason` and `llm_retry` events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Burst => "burst",
            Self::Busy => "busy",
            Self::Transient => "transient",
            Self::Stalled => "stalled",
            Self::BadRequest => "bad_request",
            Self::Config => "config",
        }
    }
}

/// Failed model call. The text names the model entry and never contains a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model {model:?}: {message}")]
pub struct ModelError {
    /// Name of the model entry.
    pub model: String,
    /// Class of the failure.
    pub kind: ModelErrorKind,
    /// Description of the failure, with the provider's message if there is one.
    pub message: String,
    /// HTTP status, if there was a response.
    pub status: Option<u16>,
    /// Delay that the provider requested.
    pub retry_after: Option<Duration>,
}
