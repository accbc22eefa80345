//! Scheduled tasks.

use sea_orm::entity::prelude::*;

/// Scheduled task. Exactly one of `run_at` and `cron` is set.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "scheduled_tasks")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) task_id: String,
    pub(crate) user_id: String,
    pub(crate) context_mode: String,
    pub(crate) thread_id: Option<String>,
    pub(crate) title: String,
    pub(crate) prompt: String,
    pub(crate) run_at: Option<i64>,
    pub(crate) cron: Option<String>,
    pub(crate) timezone: String,
    pub(crate) status: String,
    pub(crate) next_run_at: Option<i64>,
    pub(crate) last_run_at: Option<i64>,
    pub(crate) last_run_id: Option<String>,
    pub(crate) last_thread_id: Option<String>,
    pub(crate) last_error: Option<String>,
    pub(crate) run_count: i64,
    pub(crate) version: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
