//! Lanes of chat channels that a rate limit closes.

use sea_orm_migration::prelude::*;

/// Adds a table.
#[derive(Debug)]
pub(super) struct ChannelLanes;

impl MigrationName for ChannelLanes {
    fn name(&self) -> &str {
        "m0026_channel_lanes"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for ChannelLanes {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(include_str!("m0026_channel_lanes.sql"))
            .await?;
        Ok(())
    }
}
