//! Why a server's tools are not there, or a call of one failed.

use std::error::Error;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;

use super::http::Trouble;
use super::oauth::TokenError;
use super::sse::SseError;

/// How much of a server's own words is passed on, in characters.
const LONGEST_WORDS: usize = 2_000;

/// What went wrong with a server. The texts go to models and logs: none shows an address or a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpError {
    #[error("its program could not be started: {0}")]
    Start(String),
    #[error("{0}")]
    Link(String),
    #[error(transparent)]
    Http(Trouble),
    #[error("it did not {phase} within {} s", limit.as_secs_f64())]
    Late {
        phase: &'static str,
        limit: Duration,
    },
    #[error("it refused: {0}")]
    Refused(String),
    #[error("it gave an answer that does not fit the question")]
    Answer,
    #[error("the connection ended")]
    Ended,
    #[error("it is not configured any more")]
    Gone,
    #[error("all {0} conversations that may be open at once are in use, try again later")]
    Full(usize),
    #[error("it has too many tools: no more than {0} pages are read")]
    TooManyPages(usize),
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl McpError {
    pub(super) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(data) => Self::Refused(words(&data.message)),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                Self::Ended
            }
            ClientInitializeError::TransportError { error, .. } => {
                Self::of_link(error.error.as_ref())
            }
            _ => Self::Answer,
        }
    }

    pub(super) fn of_call(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(data) => Self::Refused(words(&data.message)),
            ServiceError::TransportSend(error) => Self::of_link(error.error.as_ref()),
            ServiceError::UnexpectedResponse => Self::Answer,
            _ => Self::Ended,
        }
    }

    /// A failure of the way.
    pub(super) fn of_link(error: &(dyn Error + 'static)) -> Self {
        match error.downcast_ref::<SseError>() {
            Some(SseError::Http(trouble)) => Self::Http(*trouble),
            Some(error) => Self::Link(error.to_string()),
            None => Self::Http(Trouble::behind(error)),
        }
    }
}

/// The beginning of what a server says.
fn words(text: &str) -> String {
    text.chars().take(LONGEST_WORDS).collect()
}
