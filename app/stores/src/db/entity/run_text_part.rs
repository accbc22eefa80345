//! Parts of large texts of runs.

use sea_orm::entity::prelude::*;

/// Part of the text of one column of a run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "run_text_parts")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) column_name: String,
    /// Position of the part in the text, from 0.
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) part: i32,
    pub(crate) part_text: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
