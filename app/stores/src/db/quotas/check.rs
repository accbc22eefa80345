//! Check of the quotas of one user by the write that creates a row.

use deerflow_core::ids::ThreadId;
use deerflow_core::quota::{Quota, QuotaExceeded};
use deerflow_runtime::runs::store::StoreError;
use rusqlite::Connection;
use sea_orm::{DatabaseTransaction, EntityTrait, QuerySelect};

use super::Quotas;
use super::count::{count, prepared_count};
use crate::db::connect::Database;
use crate::db::entity::thread;
use crate::db::error::read;
use crate::db::text_lock::lock_text;
use crate::db::tx::TxError;

/// Quotas of one user for one write. The write checks them when it knows that its row is new, so
/// that a repeated request returns what the first one created.
#[derive(Debug, Clone)]
pub(crate) struct QuotaCheck {
    quotas: Quotas,
    user: Option<String>,
    /// Result of the check of the size, which was measured before the transaction.
    size: Result<(), QuotaExceeded>,
}

impl QuotaCheck {
    /// Permits everything.
    #[cfg(test)]
    pub(crate) fn unlimited() -> Self {
        Self {
            quotas: Quotas::default(),
            user: None,
            size: Ok(()),
        }
    }

    /// Checks the size of the user's rows.
    pub(crate) fn size(&self) -> Result<(), QuotaExceeded> {
        self.size
    }

    /// Returns `true` if the user's size permits another row, and so does the number of their rows
    /// without being counted again. The row must be inserted then.
    pub(crate) fn permits_uncounted(&self, quota: Quota) -> bool {
        self.size.is_ok() && self.quotas.to_count(quota, self.user.as_deref()).is_none()
    }

    /// Checks the size, and the number of the user's rows after one was inserted. The transaction
    /// must be rolled back if a quota is exceeded.
    pub(crate) async fn inserted<E: From<QuotaExceeded>>(
        &self,
        tx: &DatabaseTransaction,
        quota: Quota,
    ) -> Result<(), TxError<E>> {
        let refused = |exceeded: QuotaExceeded| TxError::Refused(exceeded.into());
        self.size.map_err(refused)?;
        let Some((limit, user)) = self.quotas.to_count(quota, self.user.as_deref()) else {
            return Ok(());
        };
        lock_text(tx, &format!("{quota} of {user}")).await?;
        let count = count(tx, quota, user, limit).await?;
        if count > limit {
            let used = count - 1;
            return Err(refused(QuotaExceeded { quota, used, limit }));
        }
        self.quotas.remember(quota, user, limit - count);
        Ok(())
    }

    /// Checks the size, and the number of the user's rows before one is inserted, with prepared
    /// statements of SQLite.
    pub(crate) fn before(
        &self,
        connection: &Connection,
        quota: Quota,
    ) -> rusqlite::Result<Result<(), QuotaExceeded>> {
        if self.size.is_err() {
            return Ok(self.size);
        }
        let Some((limit, user)) = self.quotas.to_count(quota, self.user.as_deref()) else {
            return Ok(Ok(()));
        };
        let used = prepared_count(connection, quota, user, limit)?;
        if used >= limit {
            return Ok(Err(QuotaExceeded { quota, used, limit }));
        }
        self.quotas.remember(quota, user, limit - used - 1);
        Ok(Ok(()))
    }
}

impl Database {
    /// Measures the rows of the users that have created some since their last measurement.
    pub async fn measure_quotas(&self) {
        self.quotas().measure(self.reads()).await;
    }

    /// Returns the check of the user's quotas for one write.
    pub(crate) async fn quota_check(&self, user: Option<&str>) -> QuotaCheck {
        QuotaCheck {
            quotas: self.quotas().clone(),
            user: user.map(str::to_owned),
            size: self.quotas().check_size(self.reads(), user).await,
        }
    }

    /// Returns the check of the quotas of a thread's owner for one write.
    pub(crate) async fn quota_check_of_owner(
        &self,
        thread: &ThreadId,
    ) -> Result<QuotaCheck, StoreError> {
        let mut owner = None;
        if self.quotas().limit_sizes() {
            let select = thread::Entity::find_by_id(thread.as_str())
                .select_only()
                .column(thread::Column::UserId)
                .into_tuple::<Option<String>>();
            owner = read(select.one(self.reads()).await)?.flatten();
        }
        Ok(self.quota_check(owner.as_deref()).await)
    }
}
