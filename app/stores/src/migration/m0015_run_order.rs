//! Whose turn it is and how long a run has been at work, whatever the clocks of processes say.

use sea_orm_migration::prelude::*;

/// Adds columns.
#[derive(Debug)]
pub(super) struct RunOrder;

impl MigrationName for RunOrder {
    fn name(&self) -> &str {
        "m0015_run_order"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunOrder {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0015_run_order.sql"))
            .await?;
        Ok(())
    }
}
