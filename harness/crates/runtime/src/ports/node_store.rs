//! Processes that execute the runs of a store, and their leases.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::definition::{CancelAction, StoreError};
use deerflow_core::ids::{NodeId, RunId, ThreadId};

/// Lease of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// The process uses the store exclusively: no earlier process uses it any more. The lease does
    /// not expire.
    Alone,
    /// Other processes may use the store. The lease expires this long after the last renewal was
    /// received; then other processes may take the runs.
    Shared(Duration),
}

/// State of this process's lock on the store. An exclusive process excludes all other processes;
/// processes that share the store exclude only exclusive ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreLockStatus {
    /// This process has held the lock without interruption since the last check.
    Kept,
    /// This process holds the lock again, or for the first time. Another process may have held it
    /// since the last check.
    Retaken,
    /// Another process holds the lock.
    Lost,
}

/// Registered process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Id of the process.
    pub node: NodeId,
    /// Address that the process announced.
    pub address: Option<String>,
    /// Time of the last renewal; for an exclusive process, the time of its registration.
    pub renewed_at: DateTime<Utc>,
    /// Time of the registration.
    pub since: DateTime<Utc>,
    /// Remaining time of its lease by the store's clock; `None` for an exclusive process.
    pub left: Option<Duration>,
    /// Number of runs that it owns.
    pub runs: u64,
}

/// Facts about an owned run by which its owner applies changes of other processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRun {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of its thread.
    pub thread_id: ThreadId,
    /// Attempt under which the run is owned.
    pub attempt: u32,
    /// Requested cancel, if there is one.
    pub cancel: Option<CancelAction>,
}

/// Registry of live processes. All times are those of the store's clock, not of a process's.
///
/// ```
/// use std::time::Duration;
///
/// use deerflow_core::ids::NodeId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{Lease, NodeStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let ttl = Duration::from_secs(30);
/// let (nodes, node) = (InMemoryStores::shared(), NodeId::parse("n1")?);
/// assert_eq!(nodes.register(&node, ttl).await?, Lease::Shared(ttl));
/// assert!(nodes.renew(&node, ttl).await?);
/// nodes.leave(&node).await?;
/// assert!(!nodes.renew(&node, ttl).await?);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait NodeStore: Send + Sync + std::fmt::Debug {
    /// Registers a process under a node id that was never used, with a lease of `ttl` in a shared
    /// store.
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError>;

    /// Renews a valid lease for `ttl` from now. Returns `false` if it has expired or was released;
    /// such a lease cannot be renewed.
    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError>;

    /// Releases the lease. Runs that the process still owns may be taken at once. Idempotent.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;

    /// Lists the runs that the process owns.
    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError>;

    /// Checks this process's lock on the store, and takes the lock again if it was lost.
    async fn hold(&self) -> Result<StoreLockStatus, StoreError>;

    /// Lists the processes with a valid lease, oldest first.
    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError>;
}
