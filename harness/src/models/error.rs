//! How model calls fail, in classes that decide about a retry.

use std::time::Duration;

/// The class of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No quota or money left. Not retried.
    Quota,
    /// Wrong or missing key, or no permission. Not retried.
    Auth,
    /// Too fast for now. Retried, at most once.
    Burst,
    /// The provider is overloaded. Retried.
    Busy,
    /// The connection or the provider failed for now. Retried.
    Transient,
    /// The stream was silent for too long. Retried, at most once.
    Stalled,
    /// The request was refused for what it says. Not retried.
    BadRequest,
    /// The entry cannot work as it is configured. Not retried.
    Config,
}

impl ModelErrorKind {
    /// Whether another try may help.
    pub fn is_retriable(self) -> bool {
        matches!(
            self,
            Self::Burst | Self::Busy | Self::Transient | Self::Stalled
        )
    }

    /// The word in `error_reason` and in `llm_retry` events.
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

/// A failed model call. The text names the model entry and never a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model {model:?}: {message}")]
pub struct ModelError {
    /// The model entry.
    pub model: String,
    /// The class.
    pub kind: ModelErrorKind,
    /// What happened, in the provider's words where it gave some.
    pub message: String,
    /// The HTTP status, when there was one.
    pub status: Option<u16>,
    /// How long the provider asked to wait.
    pub retry_after: Option<Duration>,
}
