//! Time at which a webhook call became a dead letter, and the holders of maintenance duties that
//! one process performs for all.

use sea_orm::DbBackend;
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
        let connection = manager.get_connection();
        connection
            .execute_unprepared(include_str!("m0017_upkeep.sql"))
            .await?;
        // The time is unknown for existing dead letters; they are retained for the full period from
        // now on.
        let now = match manager.get_database_backend() {
            DbBackend::Postgres => "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT",
            _ => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
        };
        connection
            .execute_unprepared(&format!(
                "UPDATE webhook_outbox SET died_at = {now} WHERE due_at IS NULL"
            ))
            .await?;
        Ok(())
    }
}
