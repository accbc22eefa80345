//! Threads as users see them: the view of each, and the port that lists them.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::checkpoint::{CheckpointError, PendingTask};
use crate::definition::{StoreError, ThreadStatus};
use deerflow_core::ids::ThreadId;

/// A thread as returned by `/threads`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// The thread.
    pub thread_id: ThreadId,
    /// Status of the thread.
    pub status: ThreadStatus,
    /// Time of creation, ISO 8601.
    pub created_at: String,
    /// Time of the last change, ISO 8601.
    pub updated_at: String,
    /// Metadata set by clients.
    pub metadata: Map<String, Value>,
    /// Newest state; in lists only the title, if there is one.
    pub values: Map<String, Value>,
    /// Pending interrupts by the id of their task; omitted in lists.
    pub interrupts: Map<String, Value>,
}

/// Error of the thread index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// Another user has a thread of this id.
    #[error("thread {0} is taken")]
    Taken(ThreadId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The states of the thread cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The thread cannot be converted to a view.
    #[error("the thread cannot be displayed: {0}")]
    Unshowable(String),
}

/// Lists and reads threads for their users. A thread of another user is treated as if it did not
/// exist.
///
/// To add an implementation: derive rows from stored data, name the type after its data source, and
/// run `testkit::thread_index` of `deerflow-harness` on it.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_core::ids::ThreadId;
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::threads::ThreadIndex;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let index = InMemoryStores::new();
/// let thread = ThreadId::parse("t1")?;
/// index.find_or_make("ann", &thread, DateTime::UNIX_EPOCH).await?;
/// assert!(index.status("ann", &thread).await?.is_some());
/// assert!(index.status("bob", &thread).await?.is_none());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait ThreadIndex: Send + Sync + std::fmt::Debug {
    /// Returns up to `limit` of the user's threads, most recently changed first, pinned ones
    /// (`metadata.deerflow_pinned`) before all others.
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<ThreadView>, ThreadError>;

    /// Returns one thread with its newest state.
    async fn get(&self, user: &str, thread: &ThreadId) -> Result<Option<ThreadView>, ThreadError>;

    /// Returns the status of one thread; cheaper than [`get`](Self::get).
    async fn status(
        &self,
        user: &str,
        thread: &ThreadId,
    ) -> Result<Option<ThreadStatus>, ThreadError>;

    /// Returns the status of the thread. A missing thread is created, with the creation time `at`.
    ///
    /// # Errors
    /// [`ThreadError::Taken`] if another user has it.
    async fn find_or_make(
        &self,
        user: &str,
        thread: &ThreadId,
        at: DateTime<Utc>,
    ) -> Result<ThreadStatus, ThreadError>;
}

/// Returns the pending interrupts by the id of their task.
pub fn pending_interrupts(next: &[PendingTask]) -> Map<String, Value> {
    let interrupted = next.iter().filter(|task| !task.interrupts.is_empty());
    interrupted
        .map(|task| (task.id.clone(), Value::from(task.interrupts.clone())))
        .collect()
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::threads::pending_interrupts as open_questions;
