//! Flows of users with their versions and contents, and the contents that threads pin.

use sea_orm_migration::prelude::*;

/// Adds five tables.
#[derive(Debug)]
pub(super) struct Flows;

impl MigrationName for Flows {
    fn name(&self) -> &str {
        "m0024_flows"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Flows {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0024_flows.sql"))
            .await?;
        Ok(())
    }
}
