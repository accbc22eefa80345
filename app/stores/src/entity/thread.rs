//! Threads as they are listed.

use sea_orm::entity::prelude::*;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "threads_meta")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    /// The graph of its first run.
    pub(crate) assistant_id: Option<String>,
    /// The assistant that its first run named.
    pub(crate) run_assistant_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) status: String,
    pub(crate) metadata_json: String,
    /// Whether the metadata says so; kept apart to sort by.
    pub(crate) pinned: bool,
    /// Whether the thread goes with its run.
    pub(crate) temporary: bool,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    /// 0 while its first run made it and has not ended.
    pub(crate) state_updated_at: i64,
    /// How long it stays after its last change.
    pub(crate) ttl_micros: Option<i64>,
    /// Whether its newest state stays when its time is over.
    pub(crate) keep_latest: bool,
    /// When its older states went.
    pub(crate) forgot_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
