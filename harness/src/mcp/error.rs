//! Errors of MCP tool discovery and of tool calls.

use std::error::Error;
use std::time::Duration;

use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;

use super::http::TransportFailure;
use super::oauth::TokenError;
use super::sse::SseError;

/// Maximum length of an error message that is passed on from a server, in characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// Failure of a request to a server. The texts are shown to models and written to logs: they
/// contain no address and no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum McpError {
    #[error("its program could not be started: {0}")]
    Start(String),
    #[error("{0}")]
    Link(String),
    #[error(transparent)]
    Http(TransportFailure),
    #[error("it did not {phase} within {} s", limit.as_secs_f64())]
    TimedOut {
        phase: &'static str,
        limit: Duration,
    },
    #[error("it refused: {0}")]
    Refused(String),
    #[error("it sent an unexpected response")]
    UnexpectedResponse,
    #[error("the connection ended")]
    Ended,
    #[error("it is not configured any more")]
    Removed,
    #[error("all {0} sessions are in use, try again later")]
    Full(usize),
    #[error("its tool list has more than {0} pages")]
    TooManyPages(usize),
    #[error(transparent)]
    Token(#[from] TokenError),
}

impl McpError {
    pub(super) fn of_start(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::JsonRpcError(data) => Self::Refused(message_text(&data.message)),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                Self::Ended
            }
            ClientInitializeError::TransportError { error, .. } => {
                Self::of_link(error.error.as_ref())
            }
            _ => Self::UnexpectedResponse,
        }
    }

    pub(super) fn of_call(error: &ServiceError) -> Self {
        match error {
            ServiceError::McpError(data) => Self::Refused(message_text(&data.message)),
            ServiceError::TransportSend(error) => Self::of_link(error.error.as_ref()),
            ServiceError::UnexpectedResponse => Self::UnexpectedResponse,
            _ => Self::Ended,
        }
    }

    /// Classifies a transport error.
    pub(super) fn of_link(error: &(dyn Error + 'static)) -> Self {
        match error.downcast_ref::<SseError>() {
            Some(SseError::Http(failure)) => Self::Http(*failure),
            Some(error) => Self::Link(error.to_string()),
            None => Self::Http(TransportFailure::from_error(error)),
        }
    }
}

/// Truncates an error message of a server.
fn message_text(text: &str) -> String {
    text.chars().take(MAX_ERROR_CHARS).collect()
}
