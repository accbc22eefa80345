//! The HTTP client for servers and their token endpoints.

use std::error::Error;
use std::time::Duration;

use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Url};
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Longer than this nobody waits for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longer than this no idle connection is kept.
const KEEP_IDLE: Duration = Duration::from_secs(30);
/// How often a server may send somewhere else.
const MOST_REDIRECTS: usize = 5;

/// A client with its own pool. Takes the system's proxy settings.
pub(super) fn client() -> Result<Client, reqwest::Error> {
    Client::builder()
        .user_agent(concat!("deerflow/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT)
        .pool_idle_timeout(KEEP_IDLE)
        .redirect(Policy::custom(follow))
        .tcp_nodelay(true)
        .no_gzip()
        .build()
}

/// Keys in headers of their own would follow to any host, so only the server itself may send on.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let is_home = attempt
        .previous()
        .first()
        .is_some_and(|first| is_same_origin(first, attempt.url()));
    match attempt.previous().len() {
        hops if hops > MOST_REDIRECTS => attempt.error("too many redirects"),
        _ if is_home => attempt.follow(),
        _ => attempt.stop(),
    }
}

/// Whether both addresses are of one server.
pub(super) fn is_same_origin(a: &Url, b: &Url) -> bool {
    a.origin() == b.origin()
}

/// What went wrong on the way to a server, without its address, which may hold a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Trouble {
    #[error("the server answered with status {0}")]
    Status(u16),
    #[error("the server cannot be reached")]
    Unreachable,
    #[error("the server took too long")]
    Late,
    #[error("the connection broke off")]
    Broken,
    #[error("the server does not speak the protocol")]
    Foreign,
}

impl Trouble {
    /// What is behind an error.
    pub(super) fn behind(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                return Self::of_request(error);
            }
            // What these hold is not among their sources.
            match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                Some(StreamableHttpError::Client(error)) => return Self::of_request(error),
                Some(StreamableHttpError::HttpStatus(answer)) => {
                    return Self::Status(answer.status);
                }
                Some(StreamableHttpError::AuthRequired(_)) => return Self::Status(401),
                Some(StreamableHttpError::InsufficientScope(_)) => return Self::Status(403),
                Some(StreamableHttpError::SessionExpired) => return Self::Status(404),
                Some(StreamableHttpError::UnexpectedServerResponse(said)) => {
                    return status_in(said).map_or(Self::Foreign, Self::Status);
                }
                _ => next = error.source(),
            }
        }
        Self::Foreign
    }

    fn of_request(error: &reqwest::Error) -> Self {
        match error.status() {
            Some(status) => Self::Status(status.as_u16()),
            None if error.is_connect() => Self::Unreachable,
            None if error.is_timeout() => Self::Late,
            None => Self::Broken,
        }
    }
}

/// The status in `HTTP 404 Not Found`, which has no error of its own.
fn status_in(said: &str) -> Option<u16> {
    said.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}
