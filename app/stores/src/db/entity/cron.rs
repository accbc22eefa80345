//! Scheduled runs.

use sea_orm::entity::prelude::*;

/// Cron.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "crons")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) cron_id: String,
    pub(crate) user_id: String,
    pub(crate) assistant_id: String,
    pub(crate) thread_id: Option<String>,
    pub(crate) schedule: String,
    pub(crate) timezone: Option<String>,
    pub(crate) end_time: Option<i64>,
    pub(crate) on_run_completed: Option<String>,
    pub(crate) enabled: bool,
    pub(crate) metadata_json: String,
    pub(crate) payload_json: String,
    pub(crate) next_run_date: Option<i64>,
    /// The firing in progress.
    pub(crate) fires_for: Option<i64>,
    /// Start of the firing in progress.
    pub(crate) taken_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
