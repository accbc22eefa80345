//! User memory documents, and the threads with pending updates.

use sea_orm_migration::prelude::*;

/// Adds two tables.
#[derive(Debug)]
pub(super) struct Memories;

impl MigrationName for Memories {
    fn name(&self) -> &str {
        "m0018_memories"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Memories {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0018_memories.sql"))
            .await?;
        Ok(())
    }
}
