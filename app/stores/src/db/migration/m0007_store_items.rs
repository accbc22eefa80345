//! Item store: items and the vectors of their parts.

use sea_orm::{ConnectionTrait, DbBackend};
use sea_orm_migration::prelude::*;

/// Creates the tables.
#[derive(Debug)]
pub(super) struct StoreItems;

impl MigrationName for StoreItems {
    fn name(&self) -> &str {
        "m0007_store_items"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for StoreItems {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Keys sort by their bytes in both databases. Postgres stores vectors in a type that
        // pgvector can read.
        let (sorted, vector) = match manager.get_connection().get_database_backend() {
            DbBackend::Postgres => ("TEXT COLLATE \"C\"", "REAL[]"),
            _ => ("TEXT", "BLOB"),
        };
        let sql = include_str!("m0007_store_items.sql")
            .replace("{SORTED}", sorted)
            .replace("{VECTOR}", vector);
        manager.get_connection().execute_unprepared(&sql).await?;
        Ok(())
    }
}
