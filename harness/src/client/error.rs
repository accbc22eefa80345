//! Why a conversation did not go on.

use crate::runtime::runs::RunError;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The run was not made, or cannot be followed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run failed.
    #[error("{name}: {message}")]
    Failed {
        /// What kind of failure.
        name: String,
        /// What it says of itself.
        message: String,
    },
    /// Events were lost before they could be read; the thread has what the run came to.
    #[error("some events of the run are gone; its thread has the rest")]
    Gap,
    /// The runtime ends, and the run goes on at its next start.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}
