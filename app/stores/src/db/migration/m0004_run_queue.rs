//! Queued runs, and the outbox of webhook calls.

use sea_orm_migration::prelude::*;

/// Allows one owned run per thread instead of one active run, stores the requests of queued runs,
/// and adds the webhook outbox.
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
