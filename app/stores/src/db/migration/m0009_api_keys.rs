//! API keys of users.

use sea_orm_migration::prelude::*;

/// Creates the table.
#[derive(Debug)]
pub(super) struct ApiKeys;

impl MigrationName for ApiKeys {
    fn name(&self) -> &str {
        "m0009_api_keys"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ApiKeys {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0009_api_keys.sql"))
            .await?;
        Ok(())
    }
}
