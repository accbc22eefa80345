//! Port of the stored tasks and their runs.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::StoreError;

use super::record::{ScheduledTask, TaskRun};
use super::transitions::{Begun, Firing};

/// Maximum number of ended runs that are stored per task; older ones are deleted by new firings.
pub const MAX_ENDED_RUNS: usize = 500;

/// Result of a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskCreated {
    /// Created.
    New,
    /// The user has the maximum number of tasks; nothing was written.
    LimitReached,
    /// The thread does not exist or belongs to another user; nothing was written.
    NoThread,
}

/// Result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskUpdated {
    /// Stored.
    Stored,
    /// The task has changed since it was read, or was deleted; nothing was written.
    Outdated,
    /// The thread does not exist or belongs to another user; nothing was written.
    NoThread,
}

/// Stores tasks and their runs. Tasks of other users are treated as nonexistent. A task is deleted
/// with the thread that it reuses, and its runs with the task.
#[async_trait]
pub trait TaskStore: Send + Sync + std::fmt::Debug {
    /// Stores a new task, unless the user has `limit` tasks.
    async fn create(&self, task: ScheduledTask, limit: u64) -> Result<TaskCreated, StoreError>;
    /// Returns one task.
    async fn get(&self, user: &str, task: &str) -> Result<Option<ScheduledTask>, StoreError>;
    /// Returns the tasks of a user, newest first; with `thread` only those that reuse it.
    async fn list(
        &self,
        user: &str,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<ScheduledTask>, StoreError>;
    /// Replaces a task, unless its stored version differs from that of `task`. The store sets the
    /// new version.
    async fn update(&self, task: ScheduledTask) -> Result<TaskUpdated, StoreError>;
    /// Deletes a task with its runs; returns `false` if it did not exist.
    async fn delete(&self, user: &str, task: &str) -> Result<bool, StoreError>;
    /// Returns enabled tasks whose next firing is not after `at`, in order of that firing. Tasks of
    /// disabled accounts are omitted.
    async fn due(&self, at: DateTime<Utc>, limit: usize) -> Result<Vec<ScheduledTask>, StoreError>;
    /// Stores a firing by the rules of [`begin`](super::begin), atomically. Of concurrent callers
    /// only one gets [`Begun::Queued`]; a `firing` while the account of the user is disabled gets
    /// [`Begun::Gone`]. Deletes the oldest ended runs of the task beyond
    /// [`MAX_ENDED_RUNS`].
    async fn begin(&self, run: TaskRun, firing: Option<Firing>) -> Result<Begun, StoreError>;
    /// Replaces `seen` by `run`, and changes the task by the rules of
    /// [`advance`](super::advance), atomically. Returns `false` and writes nothing if the stored
    /// run differs from `seen` in its status or claim.
    async fn advance(&self, seen: &TaskRun, run: TaskRun) -> Result<bool, StoreError>;
    /// Returns active runs, of one task or of all, those with the oldest claim first.
    async fn active(&self, task: Option<&str>, limit: usize) -> Result<Vec<TaskRun>, StoreError>;
    /// Returns the active runs of a user's tasks.
    async fn active_of(&self, user: &str) -> Result<Vec<TaskRun>, StoreError>;
    /// Returns a page of a task's runs, newest first.
    async fn runs(
        &self,
        task: &str,
        limit: usize,
        offset: usize,
    ) -> Result<Vec<TaskRun>, StoreError>;
}
