//! Flows of users in their current version.

use sea_orm::entity::prelude::*;

/// Flow in its current version.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "flows")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) slug: String,
    /// The current version, whose hash and summary are repeated here for lists.
    pub(crate) version: i64,
    pub(crate) content_hash: String,
    pub(crate) summary_json: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
