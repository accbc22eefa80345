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

#[cfg(test)]
mod tests {
    use sea_orm::{Database, Statement};
    use sea_orm_migration::MigratorTrait;

    use super::*;
    use crate::db::migration::{Migrator, names};

    #[tokio::test]
    async fn stored_texts_become_the_first_parts() {
        let db = Database::connect("sqlite::memory:").await.unwrap();
        let earlier = names().iter().position(|name| name == RunTextParts.name());
        let earlier = earlier.and_then(|count| count.try_into().ok());
        Migrator::up(&db, earlier).await.unwrap();
        let rows = "INSERT INTO runs (run_id, thread_id, assistant_id, status, attempt, multitask_strategy, \
                metadata_json, kwargs_json, recipe_json, created_at, updated_at) \
                VALUES ('r1', 't1', 'a', 'running', 1, 'reject', '{}', '{ }', '{ }', 1, 1); \
            INSERT INTO run_texts VALUES ('r1', 'kwargs_json', 'long'), ('r1', 'recipe_json', 'longer');";
        db.execute_unprepared(rows).await.unwrap();
        Migrator::up(&db, None).await.unwrap();
        let parts = || async {
            let sql = "SELECT CAST(column_name || part || part_text AS TEXT) FROM run_text_parts ORDER BY 1";
            let sql = Statement::from_string(DbBackend::Sqlite, sql);
            let rows = db.query_all_raw(sql).await.unwrap();
            let texts = rows.iter().map(|row| row.try_get_by_index(0).unwrap());
            texts.collect::<Vec<String>>()
        };
        assert_eq!(parts().await, ["kwargs_json0long", "recipe_json0longer"]);
        db.execute_unprepared("UPDATE runs SET recipe_json = NULL")
            .await
            .unwrap();
        assert_eq!(parts().await, ["kwargs_json0long"]);
        db.execute_unprepared("DELETE FROM runs").await.unwrap();
        assert_eq!(parts().await, [""; 0]);
    }
}
