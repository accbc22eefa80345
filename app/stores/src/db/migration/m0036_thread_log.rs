//! Positions of runs in the event logs of their threads.

use sea_orm_migration::prelude::*;

/// Adds a table.
#[derive(Debug)]
pub(super) struct ThreadLog;

impl MigrationName for ThreadLog {
    fn name(&self) -> &str {
        "m0036_thread_log"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ThreadLog {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0036_thread_log.sql"))
            .await?;
        Ok(())
    }
}
