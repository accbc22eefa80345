//! Assistants of users, and their versions.

use sea_orm_migration::prelude::*;

/// Creates the tables.
#[derive(Debug)]
pub(super) struct Assistants;

impl MigrationName for Assistants {
    fn name(&self) -> &str {
        "m0005_assistants"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Assistants {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0005_assistants.sql"))
            .await?;
        Ok(())
    }
}
