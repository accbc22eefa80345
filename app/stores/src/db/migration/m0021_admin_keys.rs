//! API keys that permit administration.

use sea_orm_migration::prelude::*;

/// Adds a column.
#[derive(Debug)]
pub(super) struct AdminKeys;

impl MigrationName for AdminKeys {
    fn name(&self) -> &str {
        "m0021_admin_keys"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for AdminKeys {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0021_admin_keys.sql"))
            .await?;
        Ok(())
    }
}
