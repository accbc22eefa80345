//! Postgres: an index small enough to count what is true of many threads by, and vacuums after inserts, too.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Adds an index.
#[derive(Debug)]
pub(super) struct FactCounts;

impl MigrationName for FactCounts {
    fn name(&self) -> &str {
        "m0019_fact_counts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for FactCounts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite counts by the index it has, and repeats equal keys in every one.
        if manager.get_database_backend() == DbBackend::Postgres {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0019_fact_counts.sql"))
                .await?;
        }
        Ok(())
    }
}
