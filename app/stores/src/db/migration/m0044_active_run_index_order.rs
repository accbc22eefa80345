//! SQLite: the active runs of a thread are found by an index that contains no other runs.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Creates the index of a thread's active runs again. Of two indexes that restrict a query equally
/// SQLite uses the one that was created last. Since the migration before this one that was the index
/// of all runs of a thread, so that each run read all earlier runs of its thread.
#[derive(Debug)]
pub(super) struct ActiveRunIndexOrder;

impl MigrationName for ActiveRunIndexOrder {
    fn name(&self) -> &str {
        "m0044_active_run_index_order"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ActiveRunIndexOrder {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0044_active_run_index_order.sql"))
                .await?;
        }
        Ok(())
    }
}
