//! Large texts of runs in rows of their own.

use sea_orm::DbBackend;
use sea_orm_migration::prelude::*;

/// Adds a table. On SQLite, which alone has rows in it, triggers delete the text of a column that
/// gets another value.
#[derive(Debug)]
pub(super) struct RunTexts;

impl MigrationName for RunTexts {
    fn name(&self) -> &str {
        "m0040_run_texts"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for RunTexts {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let db = manager.get_connection();
        db.execute_unprepared(include_str!("m0040_run_texts.sql"))
            .await?;
        if manager.get_database_backend() == DbBackend::Sqlite {
            db.execute_unprepared(include_str!("m0040_run_texts_sqlite.sql"))
                .await?;
        }
        Ok(())
    }
}
