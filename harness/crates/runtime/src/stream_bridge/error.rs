//! Errors of a stream bridge.

use deerflow_core::ids::RunId;

/// Reason why a bridge rejected a call or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// A newer attempt owns the stream.
    #[error("run {run_id}: attempt {attempt} may not publish, attempt {current} owns the stream")]
    Fenced {
        /// Id of the run.
        run_id: RunId,
        /// Attempt that tried to publish.
        attempt: u32,
        /// Attempt that owns the stream.
        current: u32,
    },
    /// The stream has its terminal event, and accepts no more events.
    #[error("run {0}: the stream has ended")]
    Ended(RunId),
    /// The bridge is shut down.
    #[error("the stream bridge is closed")]
    Closed,
    /// The transport behind the bridge failed.
    #[error("the stream transport failed: {0}")]
    Transport(String),
}
