//! Checks of the sizes of users over a database.

use deerflow_core::ids::ThreadId;
use deerflow_core::quota::QuotaExceeded;
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{EntityTrait, QuerySelect};

use crate::db::connect::Database;
use crate::db::entity::thread;
use crate::db::error::read;

impl Database {
    /// Measures the rows of the users that have created some since their last measurement.
    pub async fn measure_quotas(&self) {
        self.quotas().measure(self.reads()).await;
    }

    /// Checks that the rows of a user do not exceed the quota.
    pub(crate) async fn check_size(&self, user: Option<&str>) -> Result<(), QuotaExceeded> {
        self.quotas().check_size(self.reads(), user).await
    }

    /// Checks that the rows of a thread's owner do not exceed the quota.
    pub(crate) async fn check_size_of_owner(&self, thread: &ThreadId) -> Result<(), StoreError> {
        if !self.quotas().limit_sizes() {
            return Ok(());
        }
        let owner = thread::Entity::find_by_id(thread.as_str())
            .select_only()
            .column(thread::Column::UserId)
            .into_tuple::<Option<String>>();
        let owner = read(owner.one(self.reads()).await)?.flatten();
        Ok(self.check_size(owner.as_deref()).await?)
    }
}
