//! Handling of expired threads.

use sea_orm_migration::prelude::*;

/// Adds columns.
#[derive(Debug)]
pub(super) struct ThreadExpiry;

impl MigrationName for ThreadExpiry {
    fn name(&self) -> &str {
        "m0010_thread_expiry"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ThreadExpiry {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0010_thread_expiry.sql"))
            .await?;
        Ok(())
    }
}
