//! Idempotency keys, with the resource that each request created.

use sea_orm_migration::prelude::*;

/// Adds a table.
#[derive(Debug)]
pub(super) struct RequestKeys;

impl MigrationName for RequestKeys {
    fn name(&self) -> &str {
        "m0016_request_keys"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RequestKeys {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0016_request_keys.sql"))
            .await?;
        Ok(())
    }
}
