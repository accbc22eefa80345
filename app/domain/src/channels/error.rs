//! Errors of channel stores.

use deerflow_runtime::runs::store::StoreError;

/// Reason why a channel store refused an operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChannelStoreError {
    /// Another node serves the account. Nothing was written.
    #[error("another node serves this account")]
    Fenced,
    /// The inbox of the account is full. Nothing was written, the cursor neither.
    #[error("the inbox of this account is full")]
    InboxFull,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
