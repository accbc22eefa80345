//! SQLite: the runs of a thread are found by the thread, not by its user.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Creates the index of a thread's runs again. Of two indexes that restrict a query equally SQLite
/// uses the one that was created last, and a query for the runs of a user's thread must not read
/// all runs of the user. Postgres compares statistics instead.
#[derive(Debug)]
pub(super) struct RunIndexOrder;

impl MigrationName for RunIndexOrder {
    fn name(&self) -> &str {
        "m0043_run_index_order"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunIndexOrder {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0043_run_index_order.sql"))
                .await?;
        }
        Ok(())
    }
}
