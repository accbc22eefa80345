//! Scheduled tasks and their runs.

use sea_orm_migration::prelude::*;

/// Creates the tables.
#[derive(Debug)]
pub(super) struct ScheduledTasks;

impl MigrationName for ScheduledTasks {
    fn name(&self) -> &str {
        "m0028_scheduled_tasks"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ScheduledTasks {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0028_scheduled_tasks.sql"))
            .await?;
        Ok(())
    }
}
