//! Data of a user that goes with the account.

use async_trait::async_trait;
use deerflow_runtime::runs::store::StoreError;

/// Result of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedData {
    /// Kind of data, such as `threads`.
    pub kind: String,
    /// Number of deleted rows or files.
    pub count: u64,
}

/// Deletes one kind of rows or files of a user when the account is deleted.
#[async_trait]
pub trait UserData: Send + Sync + std::fmt::Debug {
    /// Deletes everything of this kind that belongs to `user`. A repetition deletes what an
    /// interrupted call left.
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError>;
}
