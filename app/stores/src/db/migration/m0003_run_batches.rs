//! The number of a run's last commit, to recognise a repeated one.

use sea_orm_migration::prelude::*;

/// Adds the column.
#[derive(Debug)]
pub(super) struct RunBatches;

impl MigrationName for RunBatches {
    fn name(&self) -> &str {
        "m0003_run_batches"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunBatches {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0003_run_batches.sql"))
            .await?;
        Ok(())
    }
}
