//! The first schema: threads, runs, events, checkpoints. The same SQL runs on both databases.

use sea_orm_migration::prelude::*;

/// Creates the tables.
#[derive(Debug)]
pub(super) struct Baseline;

impl MigrationName for Baseline {
    fn name(&self) -> &str {
        "m0001_baseline"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Baseline {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0001_baseline.sql"))
            .await?;
        Ok(())
    }
}
