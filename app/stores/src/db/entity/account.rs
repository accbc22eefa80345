//! Accounts of people.

use sea_orm::entity::prelude::*;

/// Account.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "accounts")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) account_id: String,
    /// In lower case.
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) password_hash: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) needs_setup: bool,
    pub(crate) disabled_at: Option<i64>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) last_login_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
