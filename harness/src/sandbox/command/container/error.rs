//! What keeps a container from being had, in words that name the cause and its place.

use std::error::Error;
use std::io::{self, ErrorKind};

use thiserror::Error;

/// Why there is no container for a command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// A call did not get through.
    #[error("{peer} {fault}")]
    Call {
        /// Who was called.
        peer: String,
        /// What went wrong.
        fault: CallFault,
    },
    /// A call was answered with a refusal.
    #[error("{peer} answered with status {status}: {said}")]
    Refused {
        /// Who was called.
        peer: String,
        /// The HTTP status.
        status: u16,
        /// Its own words, cut.
        said: String,
    },
    /// An answer has not the form that was agreed on.
    #[error("{peer} gave an answer that cannot be read: {why}")]
    Unreadable {
        /// Who was called.
        peer: String,
        /// What is wrong with it.
        why: String,
    },
    /// The image cannot be had.
    #[error("the image {image} is not there and cannot be fetched: {why}")]
    Image {
        /// Its name.
        image: String,
        /// What the engine said.
        why: String,
    },
    /// Something else has the name.
    #[error(
        "{name} is the name of a container that is not this conversation's; remove it, or set another sandbox.container_prefix"
    )]
    Taken {
        /// The name.
        name: String,
    },
    /// It was started and does not answer.
    #[error(
        "the container was started and did not answer within {seconds} seconds; it was removed again"
    )]
    NotReady {
        /// How long was waited.
        seconds: u64,
    },
    /// As many as may be are in use.
    #[error("all {replicas} containers are in use (sandbox.replicas); try again in a moment")]
    Full {
        /// How many there may be.
        replicas: usize,
    },
    /// The server goes down.
    #[error("the server shuts down")]
    Closing,
}

/// What went wrong on the way of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallFault {
    /// There is no such socket.
    #[error("cannot be reached: the socket is not there; is it running?")]
    NoSocket,
    /// The socket is another user's.
    #[error("cannot be reached: this user may not use the socket")]
    NotAllowed,
    /// Nobody listens.
    #[error("cannot be reached")]
    Unreachable,
    /// There was no answer in time.
    #[error("did not answer in time")]
    Late,
    /// The answer is longer than anything that was agreed on.
    #[error("gave an answer that is too long")]
    TooLong,
    /// The answer stopped in its middle, or was none.
    #[error("broke the connection off")]
    Broken,
}

impl From<reqwest::Error> for CallFault {
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
