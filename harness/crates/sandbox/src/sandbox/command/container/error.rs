//! Errors of the container sandbox; each text names the cause and its origin.

use std::error::Error;
use std::io::{self, ErrorKind};

use thiserror::Error;

/// Reason why no container is available for a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// A call failed.
    #[error("{peer} {fault}")]
    Call {
        /// Called service.
        peer: String,
        /// Cause.
        fault: CallFailure,
    },
    /// The service responded with an error status.
    #[error("{peer} responded with status {status}: {said}")]
    Refused {
        /// Called service.
        peer: String,
        /// The HTTP status.
        status: u16,
        /// Error text of the response, truncated.
        said: String,
    },
    /// The response has an unexpected format.
    #[error("{peer} sent an unreadable response: {why}")]
    Unreadable {
        /// Called service.
        peer: String,
        /// Description of the problem.
        why: String,
    },
    /// The image is missing and cannot be pulled.
    #[error("the image {image} is missing and cannot be pulled: {why}")]
    Image {
        /// Name of the image.
        image: String,
        /// Error text of the engine.
        why: String,
    },
    /// Another conversation or program uses the container name.
    #[error(
        "the container {name} belongs to another conversation or program; remove it, or set another sandbox.container_prefix"
    )]
    Taken {
        /// Name of the container.
        name: String,
    },
    /// The container was started but is not ready.
    #[error(
        "the container did not respond within {seconds} seconds after its start and was removed"
    )]
    NotReady {
        /// Time waited.
        seconds: u64,
    },
    /// The maximum number of containers is in use.
    #[error("all {replicas} containers are in use (sandbox.replicas); try again in a moment")]
    Full {
        /// Maximum number of containers.
        replicas: usize,
    },
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Closing,
}

/// Reason why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The socket does not exist.
    #[error("cannot be reached: the socket does not exist; is it running?")]
    NoSocket,
    /// The socket belongs to another user.
    #[error("cannot be reached: this user has no permission for the socket")]
    NotAllowed,
    /// The connection was refused.
    #[error("cannot be reached")]
    Unreachable,
    /// Timeout.
    #[error("did not respond in time")]
    Late,
    /// The response is longer than the limit.
    #[error("sent a response that is too long")]
    TooLong,
    /// The response was incomplete or invalid.
    #[error("closed the connection early")]
    Broken,
}

impl From<reqwest::Error> for CallFailure {
    fn from(error: reqwest::Error) -> Self {
        let mut next: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(cause) = next {
            match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(ErrorKind::NotFound) => return Self::NoSocket,
                Some(ErrorKind::PermissionDenied) => return Self::NotAllowed,
                _ => next = cause.source(),
            }
        }
        match error {
            error if error.is_timeout() => Self::Late,
            error if error.is_connect() => Self::Unreachable,
            _ => Self::Broken,
        }
    }
}
