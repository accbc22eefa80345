//! The processes that work on the runs of one store, and how they are known to live.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::error::StoreError;
use crate::ids::{NodeId, RunId, ThreadId};
use crate::runtime::runs::CancelAction;

/// How a process is known to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// It has the store for itself: every other one is gone. Nothing needs to be renewed.
    Alone,
    /// Others may be there. It lives until this long after its last renewal was received; then its runs are others' to take.
    Shared(Duration),
}

/// Whether a process still keeps out those that must not work beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It does, without a break since it was last asked.
    Kept,
    /// It does again, or for the first time: others may have come and gone since it was last asked.
    Retaken,
    /// Another process has come that must not be there beside this one.
    Lost,
}

/// A process as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Which.
    pub node: NodeId,
    /// Where it says it can be found.
    pub address: Option<String>,
    /// When it last said that it lives; one that has the store for itself says so once.
    pub renewed_at: DateTime<Utc>,
    /// When it came.
    pub since: DateTime<Utc>,
    /// How much of its lease is left by the store's clock; `None` for one that has the store for itself.
    pub left: Option<Duration>,
    /// How many runs it owns.
    pub runs: u64,
}

/// A run as its owner needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRun {
    /// Which.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Under which attempt it is owned.
    pub attempt: u32,
    /// Whether it was told to stop.
    pub cancel: Option<CancelAction>,
}

/// Keeps who lives. Time is the store's own: no clock of a process counts.
#[async_trait]
pub trait NodeStore: Send + Sync + std::fmt::Debug {
    /// Enters a process under an id that was never used, for `ttl` if others may be there.
    async fn register(&self, node: &NodeId, ttl: Duration) -> Result<Lease, StoreError>;

    /// Renews a lease that is still valid, for `ttl` from now. `false` when it lapsed or was given up: it is never revived.
    async fn renew(&self, node: &NodeId, ttl: Duration) -> Result<bool, StoreError>;

    /// Gives the lease up; what the process still owns may be taken at once. Idempotent.
    async fn leave(&self, node: &NodeId) -> Result<(), StoreError>;

    /// The runs that the process owns.
    async fn owned(&self, node: &NodeId) -> Result<Vec<OwnedRun>, StoreError>;

    /// Whether those are still kept out that must not work beside this process. What kept them out and broke is put up again.
    async fn hold(&self) -> Result<Hold, StoreError>;

    /// Processes whose lease is valid, the oldest first.
    async fn list(&self) -> Result<Vec<NodeRecord>, StoreError>;
}
