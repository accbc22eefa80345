//! Feedback of users on answers.

use sea_orm_migration::prelude::*;

/// Creates the table.
#[derive(Debug)]
pub(super) struct Feedback;

impl MigrationName for Feedback {
    fn name(&self) -> &str {
        "m0002_feedback"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Feedback {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0002_feedback.sql"))
            .await?;
        Ok(())
    }
}
