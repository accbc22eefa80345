//! Token usage of auxiliary model calls, which belong to no run.

use async_trait::async_trait;

use super::tables::InMemoryStores;
use crate::definition::StoreError;
use crate::ports::{AuxiliaryUsage, UsageLedger};

#[async_trait]
impl UsageLedger for InMemoryStores {
    async fn book(&self, costs: Vec<AuxiliaryUsage>) -> Result<(), StoreError> {
        let auxiliary = &mut self.0.lock().auxiliary;
        for cost in costs {
            auxiliary.entry(cost.id.clone()).or_insert(cost);
        }
        Ok(())
    }
}

impl InMemoryStores {
    /// Returns all recorded usage.
    pub fn asides(&self) -> Vec<AuxiliaryUsage> {
        self.0.lock().auxiliary.values().cloned().collect()
    }
}
