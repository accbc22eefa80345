//! Nodes, and the runs that they own.

use sea_orm_migration::prelude::*;

/// Adds a table and columns.
#[derive(Debug)]
pub(super) struct Nodes;

impl MigrationName for Nodes {
    fn name(&self) -> &str {
        "m0012_nodes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Nodes {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0012_nodes.sql"))
            .await?;
        Ok(())
    }
}
