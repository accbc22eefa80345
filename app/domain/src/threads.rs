//! Thread records: metadata, owner, title and status. Conversation content is stored in checkpoints
//! and events.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::json_size::merge_within;
use deerflow_runtime::checkpoint::CheckpointMeta;
use deerflow_runtime::runs::store::{KeyState, RequestKey, StoreError};
use deerflow_runtime::runs::{RunStatus, StopReason, ThreadStatus, ThreadTtl};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Thread record.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// Thread id.
    pub thread_id: ThreadId,
    /// Owner.
    pub user_id: Option<String>,
    /// Graph of its first run.
    pub assistant: Option<String>,
    /// Assistant id of its first run, if the run named one.
    pub assistant_id: Option<String>,
    /// Title, set by a run or by a client.
    pub title: Option<String>,
    /// Status, derived from its runs.
    pub status: ThreadStatus,
    /// Metadata set by clients.
    pub metadata: Map<String, Value>,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the last change, not counting pinning.
    pub updated_at: DateTime<Utc>,
    /// Time of the last state change.
    pub state_updated_at: DateTime<Utc>,
    /// Time to live after the last change; unlimited if absent.
    pub ttl: Option<ThreadTtl>,
}

impl ThreadRecord {
    /// Returns the expiry time if nothing changes before.
    pub fn expires_at(&self) -> Option<DateTime<Utc>> {
        self.ttl
            .and_then(|ttl| self.updated_at.checked_add_signed(ttl.after))
    }
}

/// Thread to create.
#[derive(Debug, Clone)]
pub struct NewThread {
    /// Id.
    pub thread_id: ThreadId,
    /// Owner.
    pub user_id: Option<String>,
    /// Graph, if already known.
    pub assistant: Option<String>,
    /// Assistant id, if already known.
    pub assistant_id: Option<String>,
    /// Metadata set by clients.
    pub metadata: Map<String, Value>,
    /// Time to live after the last change; unlimited if absent.
    pub ttl: Option<ThreadTtl>,
    /// Idempotency key of the request, stored with the created thread.
    pub request: Option<RequestKey>,
    /// Current time.
    pub at: DateTime<Utc>,
}

/// Result of a create.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// Created.
    New(ThreadRecord),
    /// The user already owns the id; the stored record is unchanged.
    Existing(ThreadRecord),
    /// The id belongs to another user.
    Taken,
    /// The idempotency key is known; nothing else was checked.
    Known(KeyState),
}

/// Sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSort {
    /// Time of the last change.
    #[default]
    UpdatedAt,
    /// Time of the last state change.
    StateUpdatedAt,
    /// Creation time.
    CreatedAt,
    /// Id.
    ThreadId,
    /// Status, then time of the last change.
    Status,
}

/// Filter by assistant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssistantFilter {
    /// Assistant id; matches threads whose first run named it.
    pub id: String,
    /// Graph whose default assistant this is; also matches threads whose first run named only the
    /// graph.
    pub graph: Option<String>,
}

/// Filters, order and page of a thread search.
#[derive(Debug, Clone, Default)]
pub struct ThreadSearch {
    /// Returns only these threads; empty means all.
    pub ids: Vec<ThreadId>,
    /// Returns only threads whose metadata contains this; see
    /// [`contains`](crate::containment::contains).
    pub metadata: Map<String, Value>,
    /// Returns only threads whose channel values, except `messages`, contain this. Slow for all
    /// channels but `title`: reads the states of all threads.
    pub values: Map<String, Value>,
    /// Returns only threads of this graph, according to the first run or to `graph_id` in the
    /// metadata.
    pub graph: Option<String>,
    /// Returns only threads of this assistant.
    pub assistant: Option<AssistantFilter>,
    /// Returns only threads in this status.
    pub status: Option<ThreadStatus>,
    /// Sort key.
    pub sort_by: ThreadSort,
    /// Ascending order instead of descending.
    pub ascending: bool,
    /// Sorts pinned threads (`metadata.deerflow_pinned` is `true`) first.
    pub pinned_first: bool,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

/// Changes to a thread record.
#[derive(Debug, Clone, Default)]
pub struct ThreadPatch {
    /// Merged one level deep; null values are stored.
    pub metadata: Map<String, Value>,
    /// New title; `Some(None)` removes it.
    pub title: Option<Option<String>>,
    /// New status, set by state updates outside of a run.
    pub status: Option<ThreadStatus>,
    /// New time to live.
    pub ttl: Option<ThreadTtl>,
    /// `true` if `updated_at` is set.
    pub touch: bool,
    /// Maximum size of the merged metadata, in bytes of JSON. Without it the size is not checked.
    pub max_metadata_bytes: Option<usize>,
}

impl ThreadPatch {
    /// Returns the metadata after the patch.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub fn merged(&self, before: Map<String, Value>) -> Result<Map<String, Value>, StoreError> {
        let (entries, limit) = (self.metadata.clone(), self.max_metadata_bytes);
        Ok(merge_within("metadata", before, entries, limit)?)
    }
}

/// Stored state for display; its messages are passed through unparsed.
#[derive(Debug, Clone)]
pub struct StoredState {
    /// Metadata of the checkpoint.
    pub meta: CheckpointMeta,
    /// Channel values without `messages`.
    pub channels: Map<String, Value>,
    /// Messages as a JSON list.
    pub messages: Box<RawValue>,
}

/// Content of a thread outside of its record.
#[derive(Debug, Clone, Default)]
pub struct ThreadContent {
    /// Newest state.
    pub state: Option<StoredState>,
    /// Reason why the newest state cannot be read, if it is damaged.
    pub damage: Option<String>,
    /// Result of the newest finished run.
    pub last_end: Option<LastEnd>,
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEnd {
    /// Terminal status.
    pub status: RunStatus,
    /// Error message of a failed run.
    pub error: Option<String>,
    /// Class of the error, if known.
    pub error_name: Option<String>,
    /// Reason for stopping early.
    pub stop_reason: Option<StopReason>,
}

/// Result of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// Deleted; the id will not be reused for another user.
    Removed,
    /// The thread does not exist or belongs to another user.
    NotFound,
    /// A run is active on the thread.
    Busy,
}

/// Result of a sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweptThreads {
    /// Last records of the deleted threads.
    pub deleted: Vec<ThreadRecord>,
    /// Runs of the deleted threads.
    pub runs: Vec<RunId>,
    /// Number of threads reduced to their newest state.
    pub trimmed: usize,
}

/// Number and size of stored rows or values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredSize {
    /// Number of rows or values.
    pub count: u64,
    /// Size of their JSON in bytes.
    pub bytes: u64,
}

impl StoredSize {
    /// Adds one row or value.
    pub fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes as u64;
    }
}

/// Size of the stored states of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadStorage {
    /// Checkpoints without values and pending tasks.
    pub checkpoints: StoredSize,
    /// Stored values by channel. A checkpoint stores all channels except `messages`, of which each
    /// message is stored once.
    pub channels: BTreeMap<String, StoredSize>,
    /// Pending tasks, with the state machines that resume them.
    pub pending_tasks: StoredSize,
}

/// Stores threads. Threads of other users are treated as nonexistent. Concurrent patches of
/// different keys are both applied.
#[async_trait]
pub trait ThreadStore: Send + Sync + std::fmt::Debug {
    /// Creates a thread, or returns the existing one.
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError>;
    /// Returns one thread.
    async fn get(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Option<ThreadRecord>, StoreError>;
    /// Returns the threads that match.
    async fn search(
        &self,
        search: &ThreadSearch,
        owner: &Owner,
    ) -> Result<Vec<ThreadRecord>, StoreError>;
    /// Counts all matches, ignoring limit and offset.
    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError>;
    /// Returns the contents of threads, in a constant number of statements as long as their states
    /// are short. Threads without content are left out. Performs no ownership check.
    async fn contents(
        &self,
        threads: &[ThreadId],
    ) -> Result<HashMap<ThreadId, ThreadContent>, StoreError>;
    /// Returns the size of the stored states of a thread. Performs no ownership check.
    async fn storage(&self, thread: &ThreadId) -> Result<ThreadStorage, StoreError>;
    /// Changes a thread and returns the new record. Metadata that would be larger than its limit is
    /// refused ([`StoreError::TooLarge`]), and then nothing is changed.
    async fn patch(
        &self,
        thread: &ThreadId,
        patch: ThreadPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError>;
    /// Deletes the record with all runs, events, checkpoints and logs of the thread in one
    /// transaction, unless a run is active.
    async fn delete(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError>;
    /// Deletes all checkpoints of a thread except the newest, unless a run is active.
    async fn delete_past_checkpoints(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Deleted, StoreError>;
    /// Applies the [`ThreadTtl`] of up to `limit` threads of all users that expired at or before
    /// `at`, once after each change. Threads with an active run are skipped.
    async fn sweep(&self, at: DateTime<Utc>, limit: usize) -> Result<SweptThreads, StoreError>;
}
