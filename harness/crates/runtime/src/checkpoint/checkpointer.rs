//! Port that stores checkpoints.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::error::{CheckpointError, PutError};
use super::external_update::ExternalWrite;
use super::snapshot::{CheckpointMeta, CheckpointWrite, Snapshot};
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};

/// Filter of a thread's checkpoint history.
#[derive(Debug, Clone)]
pub struct HistoryQuery {
    /// Maximum number of checkpoints; 100 by default.
    pub limit: usize,
    /// Only checkpoints older than this one.
    pub before: Option<CheckpointId>,
    /// Only checkpoints whose metadata contains all of these entries.
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

/// Selects the checkpoints of a thread to retain. Their parents are retained too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRetention {
    /// Number of newest checkpoints. The newest one is always retained.
    pub newest: u64,
    /// Checkpoints created since this time.
    pub since: Option<DateTime<Utc>>,
}

/// Stores checkpoints. Writes within a run go through `RunCommitStore`, together with the run's
/// status; this port reads, and writes updates from outside a run.
///
/// Guarantees: a write is durable when it returns; checkpoint ids are unique in a thread, but the
/// pending tasks of a checkpoint can be amended; reads see every completed write; the message log
/// only grows, except when its thread is deleted; snapshots are returned newest first.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_core::ids::{CheckpointId, ThreadId};
/// use deerflow_core::state::ThreadState;
/// use deerflow_runtime::checkpoint::{
///     CheckpointMeta, CheckpointSource, CheckpointWrite, Checkpointer,
/// };
/// use deerflow_runtime::in_memory::InMemoryStores;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let checkpointer = InMemoryStores::new();
/// let meta = CheckpointMeta {
///     checkpoint_id: CheckpointId::parse("c1")?,
///     thread_id: ThreadId::parse("t1")?,
///     parent_id: None,
///     run_id: None,
///     source: CheckpointSource::Input,
///     step: -1,
///     next: vec![],
///     machine: None,
///     metadata: Default::default(),
///     created_at: DateTime::UNIX_EPOCH,
/// };
/// let thread = meta.thread_id.clone();
/// let mut log_tail = checkpointer.log_tail(&thread).await?;
/// let write = CheckpointWrite::plan(meta, &mut ThreadState::default(), &mut log_tail);
/// checkpointer.put(write).await?;
/// let newest = checkpointer.get(&thread, None).await?;
/// assert_eq!(newest.map(|snapshot| snapshot.meta.step), Some(-1));
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Checkpointer: Send + Sync + std::fmt::Debug {
    /// Writes one checkpoint and its new messages atomically.
    async fn put(&self, write: CheckpointWrite) -> Result<(), CheckpointError>;

    /// Writes a checkpoint and its thread's row. The same transaction checks that the thread has no
    /// unfinished run, and that its newest checkpoint and log have not changed since the write was
    /// planned.
    async fn put_outside_run(&self, change: ExternalWrite) -> Result<(), PutError>;

    /// Merges entries into the metadata of the thread's newest checkpoint, one level deep, unless
    /// the thread has an unfinished run. With `max_bytes`, a result that is larger as JSON is refused
    /// ([`PutError::TooLarge`]). Returns `false` if there is no checkpoint.
    async fn patch_metadata(
        &self,
        thread: &ThreadId,
        metadata: Map<String, Value>,
        max_bytes: Option<usize>,
    ) -> Result<bool, PutError>;

    /// Returns the newest checkpoint, or the requested one. `None` if there is none.
    async fn get(
        &self,
        thread: &ThreadId,
        id: Option<&CheckpointId>,
    ) -> Result<Option<Snapshot>, CheckpointError>;

    /// Returns snapshots, newest first.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<Snapshot>, CheckpointError>;

    /// Returns metadata only, newest first: for lists that need no state.
    async fn list_meta(
        &self,
        thread: &ThreadId,
        query: &HistoryQuery,
    ) -> Result<Vec<CheckpointMeta>, CheckpointError>;

    /// Returns the last position of the thread's log, 0 if it is empty. For callers that start
    /// without a snapshot: after a rollback the log may have messages although no checkpoint
    /// remains.
    async fn log_tail(&self, thread: &ThreadId) -> Result<u64, CheckpointError>;

    /// Removes the checkpoints that one run wrote; the log remains. Idempotent.
    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), CheckpointError>;

    /// Removes up to `most` checkpoints of the thread, oldest first, and returns their number. It
    /// removes only checkpoints that `keep` does not select and that are not the parent of a
    /// selected one. Removes none while a run of the thread is unfinished; the log remains.
    async fn forget_history(
        &self,
        thread: &ThreadId,
        keep: &HistoryRetention,
        most: usize,
    ) -> Result<usize, CheckpointError>;

    /// Removes a thread's checkpoints and its log. Idempotent.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), CheckpointError>;

    /// Copies all checkpoints and the log of one thread to a new one.
    async fn copy_thread(&self, from: &ThreadId, to: &ThreadId) -> Result<(), CheckpointError>;
}
