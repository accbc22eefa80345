//! Threads, with the fields that lists of threads show, and the lock of a row.

use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::{Expiry, ThreadTtl};
use sea_orm::entity::prelude::*;
use sea_orm::{DatabaseTransaction, QuerySelect};

/// Thread record.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "threads_meta")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    /// Graph of its first run.
    pub(crate) assistant_id: Option<String>,
    /// Assistant that its first run named.
    pub(crate) run_assistant_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) status: String,
    pub(crate) metadata_json: String,
    /// Copy of the metadata flag, to sort by.
    pub(crate) pinned: bool,
    /// `true` if the thread is deleted with its last run.
    pub(crate) temporary: bool,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// 0 until its first run has ended, if that run created the thread.
    pub(crate) state_updated_at: i64,
    /// Time to live after its last change.
    pub(crate) ttl_micros: Option<i64>,
    /// `true` if its newest state is retained when it expires.
    pub(crate) keep_latest: bool,
    /// Time when its older states were deleted.
    pub(crate) forgot_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Returns `true` if the newest state is retained when the thread expires.
pub(crate) fn keeps_latest(ttl: Option<ThreadTtl>) -> bool {
    ttl.is_some_and(|ttl| ttl.then == Expiry::KeepLatest)
}

/// Reads the user's row and locks it if the database has row locks. SQLite has a single writer
/// anyway.
pub(crate) async fn locked(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    user: Option<&str>,
) -> Result<Option<Model>, DbErr> {
    let mut select = Entity::find_by_id(thread.as_str()).lock_exclusive();
    if let Some(user) = user {
        select = select.filter(Column::UserId.eq(user));
    }
    select.one(tx).await
}
