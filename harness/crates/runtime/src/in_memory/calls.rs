//! Ledger of the tool calls of runs.

use async_trait::async_trait;

use super::tables::InMemoryStores;
use crate::agent::{CallProgress, ToolLedger};
use crate::definition::StoreError;
use deerflow_core::ids::RunId;

#[async_trait]
impl ToolLedger for InMemoryStores {
    async fn progress(&self, run: &RunId, key: &str) -> Result<Option<CallProgress>, StoreError> {
        Ok(self
            .0
            .lock()
            .runs
            .get(run)
            .and_then(|run| run.calls.get(key))
            .cloned())
    }
}
