//! Contents of flows, once per owner and hash.

use sea_orm::entity::prelude::*;

/// Content of flow versions.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "flow_contents")]
pub(crate) struct Model {
    /// Empty for system flows.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) content_hash: String,
    pub(crate) content_json: String,
    /// Time since which no version has it; null while one has.
    pub(crate) unused_since: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
