//! What runs wrote down of their calls.

use async_trait::async_trait;

use super::MemoryStores;
use crate::ids::RunId;
use crate::runtime::runs::store::{CallProgress, StoreError, ToolLedger};

#[async_trait]
impl ToolLedger for MemoryStores {
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
