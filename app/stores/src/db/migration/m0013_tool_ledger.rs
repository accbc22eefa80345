//! Ledger of the tool calls of runs.

use sea_orm_migration::prelude::*;

/// Adds a table.
#[derive(Debug)]
pub(super) struct ToolLedger;

impl MigrationName for ToolLedger {
    fn name(&self) -> &str {
        "m0013_tool_ledger"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ToolLedger {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0013_tool_ledger.sql"))
            .await?;
        Ok(())
    }
}
