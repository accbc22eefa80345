//! Large texts of runs.

use sea_orm::entity::prelude::*;

/// Text of one column of a run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "run_texts")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) column_name: String,
    pub(crate) column_text: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
