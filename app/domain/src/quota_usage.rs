//! Amounts that count towards the quotas of users.

use async_trait::async_trait;
use deerflow_core::quota::Quota;
use deerflow_runtime::runs::store::StoreError;

/// Reads amounts of users.
#[async_trait]
pub trait QuotaUsageStore: Send + Sync + std::fmt::Debug {
    /// Measures an amount of a user; zero for an unknown user, and for files.
    async fn amount(&self, user: &str, quota: Quota) -> Result<u64, StoreError>;

    /// Returns the ids of up to `limit` users who own data, in order.
    async fn users(&self, limit: u64) -> Result<Vec<String>, StoreError>;
}
