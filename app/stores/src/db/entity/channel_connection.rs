//! Identities of users on chat platforms.

use sea_orm::entity::prelude::*;
use sea_orm::sea_query::Expr;

/// Link between a user and an identity.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "channel_connections")]
pub(crate) struct Model {
    /// Follows from the user and the identity.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) connection_id: String,
    pub(crate) user_id: String,
    pub(crate) provider: String,
    pub(crate) account: String,
    pub(crate) workspace: String,
    pub(crate) account_name: Option<String>,
    pub(crate) workspace_name: Option<String>,
    pub(crate) active: bool,
    pub(crate) metadata_json: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Condition for active connections, written like an index's condition.
pub(crate) fn is_active() -> Expr {
    Expr::cust("channel_connections.active")
}
