//! When dead letters died, and who does what one process does for all.

use sea_orm_migration::prelude::*;

/// Adds a column and a table.
#[derive(Debug)]
pub(super) struct Upkeep;

impl MigrationName for Upkeep {
    fn name(&self) -> &str {
        "m0017_upkeep"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Upkeep {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(include_str!("m0017_upkeep.sql")).await?;
        Ok(())
    }
}
