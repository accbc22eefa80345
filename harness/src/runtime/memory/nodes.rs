//! Who works on the runs: the last one that came, for memory is never shared by two.

use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStores;
use crate::clock::{Clock, SystemClock};
use crate::ids::NodeId;
use crate::runtime::runs::store::{Hold, Lease, NodeRecord, NodeStore, OwnedRun, StoreError};

#[async_trait]
impl NodeStore for MemoryStores {
    async fn register(&self, node: &NodeId, _ttl: Duration) -> Result<Lease, StoreError> {
        let mut tables = self.0.lock();
        tables.nodes.clear();
        tables.nodes.insert(node.clone(), SystemClock.now());
        Ok(Lease::Alone)
    }

    async fn renew(&self, node: &NodeId, _ttl: Duration) -> Result<bool, StoreError> {
        Ok(self.0.lock().nodes.contains_key(node))
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.0.lock().nodes.remove(node);
        Ok(())
    }

    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        let tables = self.0.lock();
        let owned = tables.runs.values().filter(|run| run.owner.as_ref() == Some(node)).map(|run| &run.record);
        let owned = owned.map(|run| OwnedRun {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            attempt: run.attempt,
            cancel: run.cancel,
        });
        Ok(owned.collect())
    }

    async fn hold(&self) -> Result<Hold, StoreError> {
        Ok(Hold::Kept)
    }

    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let tables = self.0.lock();
        let runs = |node: &NodeId| tables.runs.values().filter(|run| run.owner.as_ref() == Some(node)).count() as u64;
        let record = |(node, since): (&NodeId, &_)| NodeRecord { node: node.clone(), since: *since, left: None, runs: runs(node) };
        Ok(tables.nodes.iter().map(record).collect())
    }
}
