//! Outbox of webhook calls that report the end of a run.

use sea_orm::entity::prelude::*;

/// Webhook call of a run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "webhook_outbox")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    /// The run at its end: its row may be deleted before the call is delivered.
    pub(crate) run_json: String,
    pub(crate) call_json: String,
    /// Unused: a call is signed on delivery, with the current key.
    pub(crate) signature_key: Option<String>,
    pub(crate) ended_at: i64,
    pub(crate) tries: i64,
    /// Next attempt; null for a dead letter.
    pub(crate) due_at: Option<i64>,
    /// Time when it became a dead letter.
    pub(crate) died_at: Option<i64>,
    pub(crate) last_error: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
