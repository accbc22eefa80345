//! All versions of assistants.

use sea_orm::entity::prelude::*;

/// Version of an assistant.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "assistant_versions")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) assistant_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) version: i64,
    pub(crate) graph_id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) config_json: String,
    pub(crate) context_json: String,
    pub(crate) metadata_json: String,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
