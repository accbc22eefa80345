//! The port that keeps checkpoints.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{CheckpointMeta, CheckpointWrite, OutsideWrite, PutError, Snapshot};
use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::runtime::runs::store::StoreError;

/// Why a checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store failed, or is away for a while.
    #[error("checkpoints: {0}")]
    Store(#[from] StoreError),
    /// There is no room left to write.
    #[error("no space is left for checkpoints")]
    StorageFull,
    /// A stored checkpoint cannot be understood.
    #[error("checkpoint {id} of thread {thread_id} is damaged: {reason}")]
    Damaged {
        /// The thread.
        thread_id: ThreadId,
        /// The checkpoint.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Which checkpoints of a thread to list.
#[derive(Debug, Clone)]
pub struct HistoryQuery {
    /// At most this many; a hundred when nobody says.
    pub limit: usize,
    /// Only those older than this one.
    pub before: Option<CheckpointId>,
    /// Only those whose metadata contains all of these entries.
    pub metadata: serde_json::Map<String, serde_json::Value>,
}

impl Default for HistoryQuery {
    fn default() -> Self {
        Self {
            limit: 100,
            before: None,
            metadata: serde_json::Map::new(),
        }
    }
}

/// Which checkpoints of a thread stay, besides those that they follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptHistory {
    /// So many of the newest. The newest always stays.
    pub newest: u64,
    /// Those that were made since then.
    pub since: Option<DateTime<Utc>>,
}

/// Keeps checkpoints. Writes within a run go through `RunCommitStore` instead, together with the run's status; this port writes
/// only from outside a run, and reads.
///
/// Promises: a write is durable when it returns; ids never repeat in a thread, but what is due at a checkpoint can be amended;
/// reads see every returned write; the message log only grows, except when its thread is deleted; snapshots come newest first.
#[async_trait]
pub trait Checkpointer: Send + Sync + std::fmt::Debug {
    /// Writes one checkpoint and the messages that are new with it, all or nothing.
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError>;

    /// Writes a checkpoint and its thread's row in one transaction with what allows it: no run holds the thread, and the thread's
    /// newest checkpoint and log are those that the write was planned on.
    async fn put_outside_run(&self, change: OutsideWrite) -> Result<(), PutError>;

    /// Merges entries into the metadata of the thread's newest checkpoint, one level deep, unless a run holds the thread.
    /// `false` when there is no checkpoint.
    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
    ) -> Result<bool, PutError>;

    /// The newest checkpoint, or the one asked for. `None` when there is none.
    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError>;

    /// Snapshots, newest first.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError>;

    /// Facts only, newest first: for lists that need no state.
    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError>;

    /// The last place of the thread's log, 0 when it is empty. For who begins without a snapshot: a rolled-back run may have
    /// left messages in the log although no checkpoint is left.
    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError>;

    /// Removes the checkpoints that one run wrote; the log stays. Idempotent.
    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError>;

    /// Removes up to `most` checkpoints of the thread, the oldest first, that neither stay by `keep` nor are followed by one that
    /// does, and says how many those were. None goes while a run of the thread is not over; the log stays.
    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &KeptHistory,
        most: usize,
    ) -> Result<usize, CheckpointError>;

    /// Removes a thread's checkpoints and its log. Idempotent.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError>;

    /// Copies all checkpoints and the log of one thread to a new one.
    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError>;
}
