//! Conversations of single messages on chat platforms.

use sea_orm::entity::prelude::*;

/// Conversation of a message.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "channel_links")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) provider: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) account: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) chat: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) platform_id: String,
    pub(crate) conversation: String,
    pub(crate) recorded_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
