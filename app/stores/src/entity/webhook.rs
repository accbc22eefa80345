//! Calls that tell of a run's end, until they are taken.

use sea_orm::entity::prelude::*;

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_outbox")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    /// The run as it ended: it may be gone before the call is taken.
    pub(crate) run_json: String,
    pub(crate) call_json: String,
    /// Without use: a call is signed when it is made, with the key of that time.
    pub(crate) signature_key: Option<String>,
    pub(crate) ended_at: i64,
    pub(crate) tries: i64,
    /// When it is tried next; null for a dead letter.
    pub(crate) due_at: Option<i64>,
    /// Since when it is a dead letter.
    pub(crate) died_at: Option<i64>,
    pub(crate) last_error: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
