//! Durable log for events that stream bridges could not store.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Adds a table.
#[derive(Debug)]
pub(super) struct StreamLog;

impl MigrationName for StreamLog {
    fn name(&self) -> &str {
        "m0020_stream_log"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for StreamLog {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let bytes = match manager.get_database_backend() {
            DbBackend::Postgres => "BYTEA",
            _ => "BLOB",
        };
        let sql = include_str!("m0020_stream_log.sql").replace("{BYTES}", bytes);
        manager.get_connection().execute_unprepared(&sql).await?;
        Ok(())
    }
}
