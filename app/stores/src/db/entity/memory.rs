//! User memory documents.

use sea_orm::entity::prelude::*;

/// User memory document.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "memories")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    /// Empty for the default agent.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) agent: String,
    pub(crate) document_json: String,
    pub(crate) revision: i64,
    pub(crate) edits: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
