//! Postgres: functions for the writes of each run, which are one round trip each.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Adds functions. Processes of an earlier release may still use them during an update, so a later
/// migration adds changed functions under new names.
#[derive(Debug)]
pub(super) struct RunFunctions;

impl MigrationName for RunFunctions {
    fn name(&self) -> &str {
        "m0038_run_functions"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunFunctions {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Postgres {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0038_run_functions.sql"))
                .await?;
        }
        Ok(())
    }
}
