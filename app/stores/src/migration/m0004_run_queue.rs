//! Runs that wait for their turn, and the calls that tell of their ends.

use sea_orm_migration::prelude::*;

/// One owned run per thread instead of one active; what waits is written down; the outbox of webhooks.
#[derive(Debug)]
pub(super) struct RunQueue;

impl MigrationName for RunQueue {
    fn name(&self) -> &str {
        "m0004_run_queue"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunQueue {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0004_run_queue.sql"))
            .await?;
        Ok(())
    }
}
