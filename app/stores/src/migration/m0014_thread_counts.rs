//! Postgres: an index small enough to count a user's threads by, and vacuums often enough for it to be read alone.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Adds an index.
#[derive(Debug)]
pub(super) struct ThreadCounts;

impl MigrationName for ThreadCounts {
    fn name(&self) -> &str {
        "m0014_thread_counts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ThreadCounts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite counts by the indexes it has, and repeats equal keys in every one.
        if manager.get_database_backend() == DbBackend::Postgres {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0014_thread_counts.sql"))
                .await?;
        }
        Ok(())
    }
}
