//! Sessions of accounts.

use sea_orm::entity::prelude::*;

/// Session.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "sessions")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) session_id: String,
    pub(crate) user_id: String,
    /// SHA-256 of the token, in hexadecimal.
    pub(crate) token_hash: String,
    pub(crate) created_at: i64,
    pub(crate) last_used_at: i64,
    /// Follows from creation and last use.
    pub(crate) ends_at: i64,
    pub(crate) persistent: bool,
    pub(crate) user_agent: Option<String>,
    pub(crate) address: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
