//! Order of queued runs and running time of a run, independent of the clocks of processes.

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
