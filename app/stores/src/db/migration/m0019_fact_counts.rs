//! Postgres: a small index to count common facts, and vacuums after inserts too.

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
        // SQLite counts with its existing index, and would store the repeated keys again in another
        // one.
        if manager.get_database_backend() == DbBackend::Postgres {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0019_fact_counts.sql"))
                .await?;
        }
        Ok(())
    }
}
