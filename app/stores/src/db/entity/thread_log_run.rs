//! Positions of runs in the event logs of their threads.

use sea_orm::entity::prelude::*;

/// Range of one run in the log of its thread.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "thread_log_runs")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    /// Position of the first event, from 1.
    pub(crate) first_seq: i64,
    /// Number of positions; null until the end of the run was read.
    pub(crate) seq_count: Option<i64>,
    /// Status that the last event reports.
    pub(crate) ended: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
