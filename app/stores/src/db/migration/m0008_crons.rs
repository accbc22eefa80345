//! Scheduled runs.

use sea_orm_migration::prelude::*;

/// Creates the table.
#[derive(Debug)]
pub(super) struct Crons;

impl MigrationName for Crons {
    fn name(&self) -> &str {
        "m0008_crons"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Crons {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0008_crons.sql"))
            .await?;
        Ok(())
    }
}
