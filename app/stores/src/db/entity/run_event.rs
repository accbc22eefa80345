//! Events of runs: the journal.

use sea_orm::entity::prelude::*;

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "run_events")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) seq: i64,
    pub(crate) run_id: String,
    pub(crate) user_id: Option<String>,
    pub(crate) event_type: String,
    pub(crate) category: String,
    /// JSON of the content. [`LONG_CONTENT`] if `long_content` has it.
    pub(crate) content: String,
    pub(crate) event_metadata: String,
    pub(crate) created_at: i64,
    /// JSON of a long content. Only SQLite's prepared statements write it.
    pub(crate) long_content: Option<Vec<u8>>,
}

/// Value of `content` if another column has the content.
pub(crate) const LONG_CONTENT: &str = "";

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
