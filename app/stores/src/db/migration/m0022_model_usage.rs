//! Model usage per user, as rows to be summed.

use sea_orm_migration::prelude::*;

use crate::sql::usage::backfill_usage;

/// Adds a table, fills it, and adds an index of runs.
#[derive(Debug)]
pub(super) struct ModelUsage;

impl MigrationName for ModelUsage {
    fn name(&self) -> &str {
        "m0022_model_usage"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ModelUsage {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0022_model_usage.sql"))
            .await?;
        backfill_usage(manager.get_connection()).await
    }
}
