//! Conversations of bots and their threads.

use sea_orm::entity::prelude::*;

/// Conversation.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "channel_conversations")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) provider: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) account: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) conversation_key: String,
    pub(crate) chat: String,
    pub(crate) topic: Option<String>,
    pub(crate) thread_id: String,
    pub(crate) user_id: String,
    pub(crate) options_json: String,
    pub(crate) question_json: Option<String>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
