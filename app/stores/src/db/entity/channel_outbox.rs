//! Messages that bots send.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

/// Row of the outbox.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "channel_outbox")]
pub(crate) struct Model {
    #[sea_orm(primary_key)]
    pub(crate) seq: i64,
    pub(crate) outbox_id: String,
    pub(crate) provider: String,
    pub(crate) account: String,
    pub(crate) chat: String,
    pub(crate) conversation: String,
    pub(crate) part: i64,
    pub(crate) state: String,
    pub(crate) attempts: i64,
    pub(crate) not_before: i64,
    pub(crate) error: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) platform_ids_json: String,
    pub(crate) progress_json: String,
    pub(crate) body_json: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Condition for pending rows, written like an index's condition.
pub(crate) fn is_pending() -> Expr {
    Expr::cust("channel_outbox.state = 'pending'")
}
