//! Nodes that own runs: the last registered one, or, with shared stores, all with valid leases.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::tables::{InMemoryStores, Node, Tables};
use crate::definition::StoreError;
use crate::ports::{Lease, NodeRecord, NodeStore, OwnedRun, StoreLockStatus};
use deerflow_core::clock::{Clock, SystemClock};
use deerflow_core::ids::NodeId;

#[async_trait]
impl NodeStore for InMemoryStores {
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError> {
        let mut tables = self.0.lock();
        let lease = if tables.shared {
            Lease::Shared(ttl)
        } else {
            Lease::Alone
        };
        if lease == Lease::Alone {
            tables.nodes.clear();
        }
        let until = tables.until(ttl);
        let since = SystemClock.now();
        tables.nodes.insert(
            node.clone(),
            Node {
                since,
                renewed_at: since,
                until,
            },
        );
        Ok(lease)
    }

    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError> {
        let mut tables = self.0.lock();
        let until = tables.until(ttl);
        let Some(node) = tables.nodes.get_mut(node).filter(|node| node.is_live()) else {
            return Ok(false);
        };
        (node.until, node.renewed_at) = (until, SystemClock.now());
        Ok(true)
    }

    async fn leave(&self, node: &NodeId) -> Result<(), StoreError> {
        self.0.lock().nodes.remove(node);
        Ok(())
    }

    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError> {
        let tables = self.0.lock();
        let owned = tables
            .runs
            .unfinished()
            .filter(|run| run.owner.as_ref() == Some(node))
            .map(|run| &run.record);
        let owned = owned.map(|run| OwnedRun {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            attempt: run.attempt,
            cancel: run.cancel,
        });
        Ok(owned.collect())
    }

    async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        Ok(StoreLockStatus::Kept)
    }

    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError> {
        let tables = self.0.lock();
        let runs = |node: &NodeId| {
            tables
                .runs
                .unfinished()
                .filter(|run| run.owner.as_ref() == Some(node))
                .count() as u64
        };
        let mut living: Vec<_> = tables
            .nodes
            .iter()
            .filter(|(_, node)| node.is_live())
            .collect();
        living.sort_by_key(|(_, node)| node.since);
        let left = |node: &Node| {
            node.until
                .map(|until| until.saturating_duration_since(Instant::now()))
        };
        let record = |(id, node): (&NodeId, &Node)| NodeRecord {
            node: id.clone(),
            address: None,
            renewed_at: node.renewed_at,
            since: node.since,
            left: left(node),
            runs: runs(id),
        };
        Ok(living.into_iter().map(record).collect())
    }
}

impl Tables {
    /// Returns the nodes with a valid lease.
    pub(super) fn live_nodes(&self) -> BTreeSet<NodeId> {
        self.nodes
            .iter()
            .filter(|(_, node)| node.is_live())
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn until(&self, ttl: Duration) -> Option<Instant> {
        self.shared.then(|| Instant::now() + ttl)
    }
}

impl Node {
    fn is_live(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}
