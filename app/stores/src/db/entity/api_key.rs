//! API keys of users.

use sea_orm::entity::prelude::*;

/// API key.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key_id: String,
    pub(crate) user_id: String,
    pub(crate) name: Option<String>,
    pub(crate) is_admin: bool,
    /// SHA-256 of the whole key, in hexadecimal.
    pub(crate) hash: String,
    pub(crate) created_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) revoked_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
