//! Threads with pending updates of a user memory.

use sea_orm::entity::prelude::*;

/// A row. It stays after the updates are processed, with the thread's watermark.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "memory_news")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) agent: String,
    /// The last processed message.
    pub(crate) watermark: Option<String>,
    pub(crate) number: i64,
    pub(crate) tries: i64,
    /// Null if no update is pending.
    pub(crate) due_at: Option<i64>,
    pub(crate) taken_until: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
