//! Class of the error of an ended run.

use sea_orm_migration::prelude::*;

/// Adds the column.
#[derive(Debug)]
pub(super) struct RunErrorName;

impl MigrationName for RunErrorName {
    fn name(&self) -> &str {
        "m0011_run_error"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunErrorName {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0011_run_error.sql"))
            .await?;
        Ok(())
    }
}
