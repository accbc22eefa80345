//! Error of a store.

use deerflow_core::actor_context::NoActor;
use deerflow_core::json_size::TooLarge;
use deerflow_core::quota::QuotaExceeded;

/// Failure of the store itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database or file system reported an error.
    #[error("the store failed: {0}")]
    Failed(String),
    /// The store did not respond in time, or is unreachable.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// The store is full or read-only.
    #[error("the store cannot be written: {0}")]
    NotWritable(String),
    /// A stored value would be larger than its limit; nothing was changed.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A quota of the user is exceeded; nothing was changed.
    #[error(transparent)]
    QuotaExceeded(#[from] QuotaExceeded),
    /// An owner is required, but no actor is bound.
    #[error(transparent)]
    NoActor(#[from] NoActor),
}
