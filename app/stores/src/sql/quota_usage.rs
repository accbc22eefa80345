//! Amounts that count towards the quotas of users.

use async_trait::async_trait;
use deerflow_core::quota::Quota;
use deerflow_domain::quota_usage::QuotaUsageStore;
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{ConnectionTrait, DbErr, Statement};

use crate::db::connect::Database;
use crate::db::error::read;
use crate::db::quotas::count::count;
use crate::db::quotas::size::stored_bytes;
use crate::sql::runs::count_unfinished;

const USERS: &str = "\
    SELECT user_id FROM threads_meta WHERE user_id IS NOT NULL \
    UNION SELECT user_id FROM runs WHERE user_id IS NOT NULL \
    UNION SELECT user_id FROM assistants WHERE user_id IS NOT NULL \
    UNION SELECT user_id FROM store_items \
    ORDER BY user_id LIMIT $1";

/// Amounts of users over SQL.
#[derive(Debug, Clone)]
pub struct SqlQuotaUsage {
    db: Database,
}

impl SqlQuotaUsage {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }

    async fn measure(&self, user: &str, quota: Quota) -> Result<u64, DbErr> {
        let db = self.db.reads();
        match quota {
            Quota::ActiveRuns => Ok(count_unfinished(db, user).await?.active),
            Quota::QueuedRuns => Ok(count_unfinished(db, user).await?.queued),
            Quota::StoredBytes => stored_bytes(db, user).await,
            _ => count(db, quota, user, u64::MAX).await,
        }
    }
}

#[async_trait]
impl QuotaUsageStore for SqlQuotaUsage {
    async fn amount(&self, user: &str, quota: Quota) -> Result<u64, StoreError> {
        read(self.measure(user, quota).await)
    }

    async fn users(&self, limit: u64) -> Result<Vec<String>, StoreError> {
        let db = self.db.reads();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let statement =
            Statement::from_sql_and_values(db.get_database_backend(), USERS, [limit.into()]);
        let rows = read(db.query_all_raw(statement).await)?;
        read(rows.iter().map(|row| row.try_get_by_index(0)).collect())
    }
}
