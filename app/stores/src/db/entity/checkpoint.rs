//! Checkpoints: metadata, channels and the positions of their messages.

use sea_orm::entity::prelude::*;

/// Checkpoint of a thread.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "checkpoints")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) checkpoint_id: String,
    pub(crate) parent_id: Option<String>,
    pub(crate) run_id: Option<String>,
    pub(crate) source: String,
    pub(crate) step: i64,
    pub(crate) layout_json: String,
    pub(crate) channels_json: String,
    pub(crate) next_json: String,
    pub(crate) machine_json: Option<String>,
    pub(crate) metadata_json: String,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
