//! Thread search: facts of the metadata, assistants and sort orders; and the expiry of threads.

use sea_orm::{ConnectionTrait, Statement, TryGetableMany};
use sea_orm_migration::prelude::*;

use crate::db::fact_index::fact_set;
use crate::db::json::from_json;
use crate::db::statement_batch::StatementBatch;

/// Number of threads that are indexed at a time.
const PAGE: u64 = 500;

/// Adds columns, indexes and the table of facts, and fills it.
#[derive(Debug)]
pub(super) struct ThreadSearch;

impl MigrationName for ThreadSearch {
    fn name(&self) -> &str {
        "m0006_thread_search"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ThreadSearch {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0006_thread_search.sql"))
            .await?;
        index_threads(manager.get_connection()).await
    }
}

/// Inserts the facts of all threads into the empty table.
async fn index_threads(db: &impl ConnectionTrait) -> Result<(), DbErr> {
    let select = format!(
        "SELECT thread_id, user_id, metadata_json FROM threads_meta WHERE thread_id > $1 ORDER BY thread_id LIMIT {PAGE}"
    );
    let mut last = String::new();
    loop {
        let page = db
            .query_all_raw(Statement::from_sql_and_values(
                db.get_database_backend(),
                &select,
                [last.as_str().into()],
            ))
            .await?;
        let mut rows = Vec::new();
        for row in &page {
            let (thread_id, user_id, metadata) =
                <(String, Option<String>, String)>::try_get_many_by_index(row)?;
            // Searches by metadata do not return an unreadable thread; the migration leaves it
            // unchanged.
            let metadata = from_json(&metadata).inspect_err(|error| {
                tracing::error!(thread_id, error, "a thread's metadata is damaged")
            });
            for (path, value) in fact_set(&metadata.unwrap_or_default()) {
                rows.push(vec![
                    thread_id.as_str().into(),
                    path.into(),
                    value.into(),
                    user_id.clone().into(),
                ]);
            }
            last = thread_id;
        }
        let mut statements = StatementBatch::new(db);
        statements.add_rows(
            "thread_facts (thread_id, path, value, user_id)",
            "(?, ?, ?, ?)",
            rows,
        );
        statements.run(db).await?;
        if page.is_empty() {
            return Ok(());
        }
    }
}
