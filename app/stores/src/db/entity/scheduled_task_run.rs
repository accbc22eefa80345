//! Runs of scheduled tasks.

use sea_orm::entity::prelude::*;

/// Firing of a scheduled task.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "scheduled_task_runs")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) task_run_id: String,
    pub(crate) task_id: String,
    pub(crate) user_id: String,
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    pub(crate) scheduled_for: i64,
    /// `scheduled` or `manual`.
    pub(crate) cause: String,
    pub(crate) status: String,
    pub(crate) error: Option<String>,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) claimed_at: i64,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
