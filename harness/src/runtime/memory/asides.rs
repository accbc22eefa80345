//! What models were asked beside runs.

use async_trait::async_trait;

use super::MemoryStores;
use crate::runtime::runs::store::{AsideCost, AsideLedger, StoreError};

#[async_trait]
impl AsideLedger for MemoryStores {
    async fn book(&self, costs: Vec<AsideCost>) -> Result<(), StoreError> {
        let asides = &mut self.0.lock().asides;
        for cost in costs {
            asides.entry(cost.id.clone()).or_insert(cost);
        }
        Ok(())
    }
}

impl MemoryStores {
    /// Everything that was booked.
    pub fn asides(&self) -> Vec<AsideCost> {
        self.0.lock().asides.values().cloned().collect()
    }
}
