//! Threads as the application lists them: metadata, owner, title, status. What is said in them lives in checkpoints and events.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::ThreadStatus;
use harness::runtime::runs::store::StoreError;
use serde_json::{Map, Value};

/// A thread's row.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// The thread.
    pub thread_id: ThreadId,
    /// Whose it is.
    pub user_id: Option<String>,
    /// The assistant of its first run.
    pub assistant: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Derived together with its runs.
    pub status: ThreadStatus,
    /// Client metadata.
    pub metadata: Map<String, Value>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it last changed; pinning does not count.
    pub updated_at: DateTime<Utc>,
}

/// A thread to be made.
#[derive(Debug, Clone)]
pub struct NewThread {
    /// Its id.
    pub thread_id: ThreadId,
    /// Whose it shall be.
    pub user_id: Option<String>,
    /// The assistant, if known yet.
    pub assistant: Option<String>,
    /// Client metadata.
    pub metadata: Map<String, Value>,
    /// Now.
    pub at: DateTime<Utc>,
}

/// What a create found.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is new.
    New(ThreadRecord),
    /// The user has it already; it is unchanged.
    Existing(ThreadRecord),
    /// Somebody else has it.
    Taken,
}

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSort {
    /// The last change.
    #[default]
    UpdatedAt,
    /// The making.
    CreatedAt,
    /// The id.
    ThreadId,
    /// The status.
    Status,
}

/// Which threads to find.
#[derive(Debug, Clone, Default)]
pub struct ThreadSearch {
    /// Only these; empty means any.
    pub ids: Vec<ThreadId>,
    /// Only with exactly these metadata entries: type-aware, null matches a null and not an absence.
    pub metadata: Map<String, Value>,
    /// Only in this status.
    pub status: Option<ThreadStatus>,
    /// What to sort by.
    pub sort_by: ThreadSort,
    /// Smallest first.
    pub ascending: bool,
    /// Whether pinned threads (`metadata.deerflow_pinned` is `true`) come first.
    pub pinned_first: bool,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// A change to a thread's row.
#[derive(Debug, Clone, Default)]
pub struct ThreadPatch {
    /// Merged one level deep; null stays null.
    pub metadata: Map<String, Value>,
    /// A new title; `Some(None)` removes it.
    pub title: Option<Option<String>>,
    /// A new status, written by state updates from outside a run.
    pub status: Option<ThreadStatus>,
    /// Whether `updated_at` moves.
    pub touch: bool,
}

/// What a delete found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// It is gone, and its id is not given to another user.
    Done,
    /// There is none, or it is somebody else's.
    NotFound,
    /// A run is active on it.
    Busy,
}

/// Keeps threads. Another user's thread is as if it did not exist; concurrent patches of different keys both survive.
#[async_trait]
pub trait ThreadStore: Send + Sync + std::fmt::Debug {
    /// Makes a thread, or finds it.
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError>;
    /// One thread.
    async fn get(&self, thread: &ThreadId, owner: &Owner) -> Result<Option<ThreadRecord>, StoreError>;
    /// Threads that match.
    async fn search(&self, search: &ThreadSearch, owner: &Owner) -> Result<Vec<ThreadRecord>, StoreError>;
    /// How many match, limit and offset aside.
    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError>;
    /// Changes one thread and gives it back as it is then.
    async fn patch(
        &self,
        thread: &ThreadId,
        patch: ThreadPatch,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<Option<ThreadRecord>, StoreError>;
    /// Removes the row with all runs, events, checkpoints and log of the thread, in one transaction, unless a run is active.
    async fn delete(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError>;
}
