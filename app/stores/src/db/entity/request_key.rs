//! Idempotency keys, with the resource that each request created.

use sea_orm::entity::prelude::*;

/// Idempotency key of one request.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "request_keys")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) route: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) name: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) part: i64,
    /// Hash of the request.
    pub(crate) digest: String,
    pub(crate) made_json: String,
    pub(crate) expires_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
