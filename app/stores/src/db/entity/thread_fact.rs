//! Facts of a thread's metadata, for searches.

use sea_orm::entity::prelude::*;

/// Metadata fact of a thread.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_facts")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) path: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) value: String,
    /// User that owns the thread.
    pub(crate) user_id: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
