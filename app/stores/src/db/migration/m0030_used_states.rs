//! Used states of sign-ins through identity providers.

use sea_orm_migration::prelude::*;

/// Creates the table.
#[derive(Debug)]
pub(super) struct UsedStates;

impl MigrationName for UsedStates {
    fn name(&self) -> &str {
        "m0030_used_states"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for UsedStates {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0030_used_states.sql"))
            .await?;
        Ok(())
    }
}
