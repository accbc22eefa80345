//! The HTTP client for servers and their token endpoints.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle connections are closed after this time.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// Creates a client with its own connection pool. It uses the system's proxy settings.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    Client::builder()
        .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE_TIMEOUT)
        .redirect(Policy::custom(follow))
        .tcp_nodelay(true)
        .no_gzip()
        .build()
}

/// Follows redirects within the origin only: `reqwest` would send custom headers, which may hold
/// keys, to any host.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_same_server = attempt
        .previous()
        .first()
        .is_some_and(|first| is_same_origin(first, attempt.url()));
    match attempt.previous().len() {
        hops if hops > MAX_REDIRECTS => attempt.error("too many redirects"),
        _ if is_same_server => attempt.follow(),
        _ => attempt.stop(),
    }
}

/// `true` if both addresses have the same origin.
pub(super) fn is_same_origin(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

/// Failure of an HTTP exchange with a server. It does not contain the address, which may hold a
/// key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum TransportFailure {
    #[error("the server answered with status {0}")]
    Status(u16),
    #[error("the server cannot be reached")]
    Unreachable,
    #[error("the server did not respond in time")]
    TimedOut,
    #[error("the connection was interrupted")]
    Disconnected,
    #[error("the server violates the protocol")]
    ProtocolViolation,
}

impl TransportFailure {
    /// Classifies an error by its chain of sources.
    pub(super) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                return Self::of_request(error);
            }
            // The errors inside these variants are not part of the source chain.
            match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                Some(StreamableHttpError::Client(error)) => return Self::of_request(error),
                Some(StreamableHttpError::HttpStatus(answer)) => {
                    return Self::Status(answer.status);
                }
                Some(StreamableHttpError::AuthRequired(_)) => return Self::Status(401),
                Some(StreamableHttpError::InsufficientScope(_)) => return Self::Status(403),
                Some(StreamableHttpError::SessionExpired) => return Self::Status(404),
                Some(StreamableHttpError::UnexpectedServerResponse(text)) => {
                    return status_in(text).map_or(Self::ProtocolViolation, Self::Status);
                }
                _ => next = error.source(),
            }
        }
        Self::ProtocolViolation
    }

    fn of_request(error: &reqwest::Error) -> Self {
        match error.status() {
            Some(status) => Self::Status(status.as_u16()),
            None if error.is_connect() => Self::Unreachable,
            None if error.is_timeout() => Self::TimedOut,
            None => Self::Disconnected,
        }
    }
}

/// Parses the status from the text `HTTP 404 Not Found`, for which `rmcp` has no error variant.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}
