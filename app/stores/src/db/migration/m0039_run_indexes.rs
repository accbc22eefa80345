//! SQLite: partial indexes of runs whose conditions are cheap to evaluate.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Replaces indexes of SQLite. A list of more than two constants in an index condition builds a
/// temporary tree at each write of a run, twice per index.
#[derive(Debug)]
pub(super) struct RunIndexes;

impl MigrationName for RunIndexes {
    fn name(&self) -> &str {
        "m0039_run_indexes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunIndexes {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Sqlite {
            manager
                .get_connection()
                .execute_unprepared(include_str!("m0039_run_indexes.sql"))
                .await?;
        }
        Ok(())
    }
}
