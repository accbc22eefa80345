//! Audit log.

use sea_orm::entity::prelude::*;

/// Entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub(crate) struct Model {
    #[sea_orm(primary_key)]
    pub(crate) seq: i64,
    pub(crate) recorded_at: i64,
    pub(crate) actor: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) action: String,
    pub(crate) object: Option<String>,
    pub(crate) outcome: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
