//! Runs.

use sea_orm::entity::prelude::*;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "runs")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    pub(crate) thread_id: String,
    pub(crate) assistant_id: String,
    pub(crate) user_id: Option<String>,
    pub(crate) status: String,
    pub(crate) attempt: i64,
    pub(crate) model_name: Option<String>,
    pub(crate) multitask_strategy: String,
    pub(crate) metadata_json: String,
    pub(crate) kwargs_json: String,
    pub(crate) cancel_action: Option<String>,
    pub(crate) error: Option<String>,
    /// The class of the error.
    pub(crate) error_name: Option<String>,
    pub(crate) stop_reason: Option<String>,
    /// What the run adds up to, as far as it was said.
    pub(crate) completion_json: Option<String>,
    /// The number of the attempt's last commit, 0 while none had one.
    pub(crate) last_batch: i64,
    /// What to start the run from, until it is over.
    pub(crate) recipe_json: Option<String>,
    pub(crate) webhook: Option<String>,
    /// The process that executes it.
    pub(crate) owner: Option<String>,
    /// How many processes died with it.
    pub(crate) losses: i64,
    /// Among the unfinished runs of its thread, in the order of their admission.
    pub(crate) place: i64,
    /// Before this it must not begin; null where it may at once.
    pub(crate) due_at: Option<i64>,
    /// When it was first at work, by the database's clock.
    pub(crate) started_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
