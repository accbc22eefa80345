//! Threads as their users find them: what each shows, and the port that has them listed.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::checkpoint::{CheckpointError, PendingTask};
use super::runs::ThreadStatus;
use super::runs::store::StoreError;
use crate::ids::ThreadId;

/// A thread, as `/threads` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    /// The thread.
    pub thread_id: ThreadId,
    /// What goes on in it.
    pub status: ThreadStatus,
    /// When it was made, ISO 8601.
    pub created_at: String,
    /// When it last changed, ISO 8601.
    pub updated_at: String,
    /// What clients keep with it.
    pub metadata: Map<String, Value>,
    /// Its newest state; in lists its title alone, if it has one.
    pub values: Map<String, Value>,
    /// Open questions by the task that asks them; lists leave them out.
    pub interrupts: Map<String, Value>,
}

/// Why threads cannot be told of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// Somebody else has a thread of this id.
    #[error("thread {0} is taken")]
    Taken(ThreadId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its states cannot be read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// It cannot be shown.
    #[error("the thread cannot be shown: {0}")]
    Unshowable(String),
}

/// Finds threads for their users. Another user's thread is as if it did not exist.
///
/// To add an implementation: derive rows from what you keep, name it after what that is, and run `testkit::thread_index` on it.
#[async_trait]
pub trait ThreadIndex: Send + Sync + std::fmt::Debug {
    /// At most `limit` of the user's threads, those that changed last first, pinned ones (`metadata.deerflow_pinned`) before all.
    async fn list(&self, user: &str, limit: usize) -> Result<Vec<ThreadView>, ThreadError>;

    /// One of them with its newest state.
    async fn get(&self, user: &str, thread: &ThreadId) -> Result<Option<ThreadView>, ThreadError>;

    /// Whether anything runs on one of them; for who needs no more of it than [`get`](Self::get) tells.
    async fn status(
        &self,
        user: &str,
        thread: &ThreadId,
    ) -> Result<Option<ThreadStatus>, ThreadError>;

    /// Finds the thread or makes it, `at` this moment.
    ///
    /// # Errors
    /// [`ThreadError::Taken`] where another user has it.
    async fn find_or_make(
        &self,
        user: &str,
        thread: &ThreadId,
        at: DateTime<Utc>,
    ) -> Result<ThreadStatus, ThreadError>;
}

/// Open questions by the task that asks them.
pub fn open_questions(next: &[PendingTask]) -> Map<String, Value> {
    let asking = next.iter().filter(|task| !task.interrupts.is_empty());
    asking
        .map(|task| (task.id.clone(), Value::from(task.interrupts.clone())))
        .collect()
}
