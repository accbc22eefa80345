//! Messages that bots received.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

/// Row of the inbox.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "channel_inbox")]
pub(crate) struct Model {
    #[sea_orm(primary_key)]
    pub(crate) seq: i64,
    /// Follows from the five next columns.
    pub(crate) inbox_id: String,
    pub(crate) provider: String,
    pub(crate) account: String,
    pub(crate) workspace: String,
    pub(crate) chat: String,
    pub(crate) message: String,
    pub(crate) conversation: String,
    pub(crate) urgency: String,
    pub(crate) state: String,
    pub(crate) note: Option<String>,
    pub(crate) claims: i64,
    pub(crate) failures: i64,
    pub(crate) failed_since: Option<i64>,
    pub(crate) not_before: Option<i64>,
    pub(crate) received_at: i64,
    pub(crate) ended_at: Option<i64>,
    pub(crate) progress_json: String,
    pub(crate) event_json: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Condition for waiting rows, written like an index's condition.
pub(crate) fn is_waiting() -> Expr {
    Expr::cust("channel_inbox.state = 'waiting'")
}
