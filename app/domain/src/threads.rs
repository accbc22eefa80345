//! Threads as the application lists them: metadata, owner, title, status. What is said in them lives in checkpoints and events.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::ids::ThreadId;
use harness::runtime::actor_context::Owner;
use harness::runtime::checkpoint::CheckpointMeta;
use harness::runtime::runs::store::{Known, RequestKey, StoreError};
use harness::runtime::runs::{RunStatus, ThreadStatus, ThreadTtl};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A thread's row.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// The thread.
    pub thread_id: ThreadId,
    /// Whose it is.
    pub user_id: Option<String>,
    /// The graph of its first run.
    pub assistant: Option<String>,
    /// The id of the assistant of its first run, if the run named one.
    pub assistant_id: Option<String>,
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
    /// When what is said in it last changed.
    pub state_updated_at: DateTime<Utc>,
    /// How long it stays as it is; for ever when absent.
    pub ttl: Option<ThreadTtl>,
}

impl ThreadRecord {
    /// When its time is over, if it does not change before.
    pub fn expires_at(&self) -> Option<DateTime<Utc>> {
        self.ttl
            .and_then(|ttl| self.updated_at.checked_add_signed(ttl.after))
    }
}

/// A thread to be made.
#[derive(Debug, Clone)]
pub struct NewThread {
    /// Its id.
    pub thread_id: ThreadId,
    /// Whose it shall be.
    pub user_id: Option<String>,
    /// The graph, if known yet.
    pub assistant: Option<String>,
    /// The id of the assistant, if known yet.
    pub assistant_id: Option<String>,
    /// Client metadata.
    pub metadata: Map<String, Value>,
    /// How long it stays as it is; for ever when absent.
    pub ttl: Option<ThreadTtl>,
    /// What the request is known by when it comes again; kept with a thread that is made.
    pub request: Option<RequestKey>,
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
    /// The request's key is known; nothing was looked at besides.
    Known(Known),
}

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThreadSort {
    /// The last change.
    #[default]
    UpdatedAt,
    /// The last change of what is said in it.
    StateUpdatedAt,
    /// The making.
    CreatedAt,
    /// The id.
    ThreadId,
    /// The status, then the last change.
    Status,
}

/// An assistant by which threads are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AssistantFilter {
    /// Its id: threads whose first run named it.
    pub id: String,
    /// The graph whose own assistant it is: also threads whose first run named the graph only.
    pub graph: Option<String>,
}

/// Which threads to find.
#[derive(Debug, Clone, Default)]
pub struct ThreadSearch {
    /// Only these; empty means any.
    pub ids: Vec<ThreadId>,
    /// Only with metadata that contains this; see [`contains`](crate::containment::contains).
    pub metadata: Map<String, Value>,
    /// Only with channel values that contain this, `messages` aside. Slow, `title` aside: the states of all threads are read.
    pub values: Map<String, Value>,
    /// Only of this graph: by the first run, or as `graph_id` of the metadata says.
    pub graph: Option<String>,
    /// Only of this assistant.
    pub assistant: Option<AssistantFilter>,
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
    /// Another time to stay.
    pub ttl: Option<ThreadTtl>,
    /// Whether `updated_at` moves.
    pub touch: bool,
}

/// A state as it is stored, to be shown: nobody reads its messages on the way.
#[derive(Debug, Clone)]
pub struct StoredState {
    /// The checkpoint's facts.
    pub meta: CheckpointMeta,
    /// Channel values, `messages` left out.
    pub channels: Map<String, Value>,
    /// The messages as a JSON list.
    pub messages: Box<RawValue>,
}

/// What a thread holds besides its row.
#[derive(Debug, Clone, Default)]
pub struct ThreadContent {
    /// Its newest state.
    pub state: Option<StoredState>,
    /// Why its newest state cannot be shown, when it has one that is damaged.
    pub damage: Option<String>,
    /// How its newest finished run ended.
    pub last_end: Option<LastEnd>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEnd {
    /// A terminal status.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<String>,
    /// The class of that error, if anybody knew.
    pub error_name: Option<String>,
    /// Why it stopped early.
    pub stop_reason: Option<String>,
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

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Swept {
    /// The threads that are gone, as they were.
    pub gone: Vec<ThreadRecord>,
    /// How many are left with their newest state.
    pub forgot: usize,
}

/// Keeps threads. Another user's thread is as if it did not exist; concurrent patches of different keys both survive.
#[async_trait]
pub trait ThreadStore: Send + Sync + std::fmt::Debug {
    /// Makes a thread, or finds it.
    async fn create(&self, thread: NewThread) -> Result<Created, StoreError>;
    /// One thread.
    async fn get(
        &self,
        thread: &ThreadId,
        owner: &Owner,
    ) -> Result<Option<ThreadRecord>, StoreError>;
    /// Threads that match.
    async fn search(
        &self,
        search: &ThreadSearch,
        owner: &Owner,
    ) -> Result<Vec<ThreadRecord>, StoreError>;
    /// How many match, limit and offset aside.
    async fn count(&self, search: &ThreadSearch, owner: &Owner) -> Result<u64, StoreError>;
    /// What threads hold, each read once: in as many statements for many as for one, as far as their states are short. Threads
    /// that hold nothing are left out. Nobody's permission is asked.
    async fn contents(
        &self,
        threads: &[ThreadId],
    ) -> Result<HashMap<ThreadId, ThreadContent>, StoreError>;
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
    /// Removes all checkpoints of a thread but the newest, unless a run is active.
    async fn forget_past(&self, thread: &ThreadId, owner: &Owner) -> Result<Deleted, StoreError>;
    /// Does to up to `most` threads whose time is over at `at`, whoever has them, what their [`ThreadTtl`] says, once after each
    /// change. Those on which a run is active stay as they are.
    async fn sweep(&self, at: DateTime<Utc>, most: usize) -> Result<Swept, StoreError>;
}
