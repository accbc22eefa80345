//! Errors of the HTTP client, and of connections, requests and responses below the level of HTTP
//! statuses.

use std::error::Error;
use std::time::Duration;

/// Error: the client cannot be created, for example because the system's certificates cannot be
/// read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot create the HTTP client: {0}")]
pub struct HttpUnavailable(pub(super) String);

impl HttpUnavailable {
    pub(super) fn new(error: &dyn Error) -> Self {
        Self(error.to_string())
    }
}

/// Error of a connection, a request or a response.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct TransportError {
    /// Text of the error and of its causes, without addresses, which may contain keys.
    message: String,
    /// `true` if the request itself cannot be sent, so another attempt fails as well.
    pub(crate) invalid_request: bool,
}

impl TransportError {
    /// Creates an error of the connection, which another attempt may avoid.
    pub(super) fn new(error: &dyn Error) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self {
            message,
            invalid_request: false,
        }
    }

    /// Creates an error of a request that cannot be sent.
    pub(super) fn invalid(error: &dyn Error) -> Self {
        Self {
            invalid_request: true,
            ..Self::new(error)
        }
    }

    /// Creates the error of a server that does not accept a connection in time.
    pub(super) fn connect_timeout(limit: Duration) -> Self {
        Self {
            message: format!("no connection to the server within {} s", limit.as_secs()),
            invalid_request: false,
        }
    }
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        Self {
            invalid_request: error.is_builder(),
            ..Self::new(&error)
        }
    }
}

impl From<HttpUnavailable> for TransportError {
    fn from(error: HttpUnavailable) -> Self {
        Self::invalid(&error)
    }
}
