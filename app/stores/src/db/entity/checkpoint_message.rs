//! Append-only message log of each thread.

use sea_orm::entity::prelude::*;

/// Message of a thread at one position of its log.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "checkpoint_messages")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) place: i64,
    /// JSON of the message. SQLite stores a long one as a blob.
    pub(crate) message_json: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
