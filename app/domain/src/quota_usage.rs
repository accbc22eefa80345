//! Amounts that count towards the quotas of users.

use async_trait::async_trait;
use deerflow_core::quota::Quota;
use deerflow_runtime::runs::store::StoreError;

/// Amounts of one user in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Number of runs that processes own.
    pub active_runs: u64,
    /// Number of queued runs without a cancel request.
    pub queued_runs: u64,
    /// Number of threads.
    pub threads: u64,
    /// Number of assistants.
    pub assistants: u64,
    /// Number of items of the item store.
    pub items: u64,
    /// Size of the rows in bytes.
    pub stored_bytes: u64,
}

impl QuotaUsage {
    /// Returns the amount of a resource; `None` if it is not stored in the database.
    pub fn amount(&self, quota: Quota) -> Option<u64> {
        Some(match quota {
            Quota::ActiveRuns => self.active_runs,
            Quota::QueuedRuns => self.queued_runs,
            Quota::Threads => self.threads,
            Quota::Assistants => self.assistants,
            Quota::Items => self.items,
            Quota::StoredBytes => self.stored_bytes,
            Quota::FileBytes => return None,
        })
    }
}

/// Reads amounts of users.
#[async_trait]
pub trait QuotaUsageStore: Send + Sync + std::fmt::Debug {
    /// Measures the amounts of a user; zeros for an unknown one.
    async fn usage(&self, user: &str) -> Result<QuotaUsage, StoreError>;

    /// Returns the ids of up to `limit` users who own data, in order.
    async fn users(&self, limit: u64) -> Result<Vec<String>, StoreError>;
}
