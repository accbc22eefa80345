//! What can go wrong with a bridge.

use crate::ids::RunId;

/// Why a bridge refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// A newer attempt owns the stream.
    #[error("run {run_id}: attempt {attempt} may not publish, attempt {current} owns the stream")]
    Fenced {
        /// The run.
        run_id: RunId,
        /// Who tried.
        attempt: u32,
        /// Who may.
        current: u32,
    },
    /// The stream has its terminal event; nothing comes after it.
    #[error("run {0}: the stream has ended")]
    Ended(RunId),
    /// The bridge is shut down.
    #[error("the stream bridge is closed")]
    Closed,
    /// The transport behind the bridge failed.
    #[error("the stream transport failed: {0}")]
    Transport(String),
}
