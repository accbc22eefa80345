//! Amounts that count towards the quotas of users.

use async_trait::async_trait;
use deerflow_core::quota::Quota;
use deerflow_domain::quota_usage::{QuotaUsage, QuotaUsageStore};
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

    async fn amounts(&self, user: &str) -> Result<QuotaUsage, DbErr> {
        let db = self.db.reads();
        let runs = count_unfinished(db, user).await?;
        let of = async |quota| count(db, quota, user, u64::MAX >> 2).await;
        Ok(QuotaUsage {
            active_runs: runs.active,
            queued_runs: runs.queued,
            threads: of(Quota::Threads).await?,
            assistants: of(Quota::Assistants).await?,
            items: of(Quota::Items).await?,
            stored_bytes: stored_bytes(db, user).await?,
        })
    }
}

#[async_trait]
impl QuotaUsageStore for SqlQuotaUsage {
    async fn usage(&self, user: &str) -> Result<QuotaUsage, StoreError> {
        read(self.amounts(user).await)
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
