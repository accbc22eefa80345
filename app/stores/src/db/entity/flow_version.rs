//! Stored versions of flows.

use sea_orm::entity::prelude::*;

/// Version of a flow.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "flow_versions")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) slug: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) version: i64,
    pub(crate) content_hash: String,
    pub(crate) summary_json: String,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
