//! Last states of runs for repeated requests after the thread is deleted, and an index for walks
//! through histories.

use sea_orm_migration::prelude::*;

/// Adds columns and indexes.
#[derive(Debug)]
pub(super) struct KeptStates;

impl MigrationName for KeptStates {
    fn name(&self) -> &str {
        "m0023_kept_states"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for KeptStates {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0023_kept_states.sql"))
            .await?;
        Ok(())
    }
}
