//! Postgres: a small index to count a user's threads, and vacuums often enough for index-only
//! scans.

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
        // SQLite counts with its existing indexes, and would store the repeated keys again in
        // another one.
        if manager.get_database_backend() == DbBackend::Postgres {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0014_thread_counts.sql"))
                .await?;
        }
        Ok(())
    }
}
