//! Index of the unfinished runs of each user.

use sea_orm_migration::prelude::*;

/// Adds an index.
#[derive(Debug)]
pub(super) struct UserRuns;

impl MigrationName for UserRuns {
    fn name(&self) -> &str {
        "m0037_user_runs"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for UserRuns {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0037_user_runs.sql"))
            .await?;
        Ok(())
    }
}
