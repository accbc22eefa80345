//! Long contents of run events.

use sea_orm_migration::prelude::*;

/// Adds a column.
#[derive(Debug)]
pub(super) struct LongEvents;

impl MigrationName for LongEvents {
    fn name(&self) -> &str {
        "m0042_long_events"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for LongEvents {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = ColumnDef::new("long_content").blob().take();
        let table = Table::alter().table("run_events").add_column(column).take();
        manager.alter_table(table).await
    }
}
