//! Large texts of runs in several rows each.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Replaces the table of large texts by one whose rows have a part of a text each.
#[derive(Debug)]
pub(super) struct RunTextParts;

impl MigrationName for RunTextParts {
    fn name(&self) -> &str {
        "m0041_run_text_parts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunTextParts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        if manager.get_database_backend() == DbBackend::Sqlite {
            db.execute_unprepared(include_str!("m0041_run_text_parts_sqlite.sql"))
                .await?;
        }
        db.execute_unprepared(include_str!("m0041_run_text_parts.sql"))
            .await?;
        Ok(())
    }
}
