//! Thread search: facts of the metadata, assistants and sort orders; and the expiry of threads.

use sea_orm_migration::prelude::*;

use crate::sql::threads::index_all;

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
        index_all(manager.get_connection()).await
    }
}
