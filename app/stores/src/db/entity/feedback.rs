//! Feedback of users on runs.

use sea_orm::entity::prelude::*;

/// Feedback of one user on one run.
#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "feedback")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) thread_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) run_id: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) user_id: String,
    /// Unchanged when the user changes the feedback.
    pub(crate) feedback_id: String,
    pub(crate) message_id: Option<String>,
    /// 1 or -1.
    pub(crate) rating: i64,
    pub(crate) comment: Option<String>,
    pub(crate) created_at: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
