//! Feedback of users on runs: at most one row per user and run.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::runs::store::StoreError;

/// Rating of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// Thumbs up.
    Up,
    /// Thumbs down.
    Down,
}

impl Rating {
    /// Returns the number used on the wire and in the store.
    pub fn as_number(self) -> i64 {
        match self {
            Self::Up => 1,
            Self::Down => -1,
        }
    }

    /// Parses the number used on the wire and in the store.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::Up),
            -1 => Some(Self::Down),
            _ => None,
        }
    }
}

/// Feedback of one user on one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Id, kept when the user changes the feedback.
    pub feedback_id: String,
    /// Thread of the run.
    pub thread_id: ThreadId,
    /// Run id.
    pub run_id: RunId,
    /// User that gave the feedback.
    pub user_id: String,
    /// Message it refers to; `None` means the run's last answer.
    pub message_id: Option<String>,
    /// Thumbs up or down.
    pub rating: Rating,
    /// Comment of the user.
    pub comment: Option<String>,
    /// Time of the first or last submission.
    pub created_at: DateTime<Utc>,
}

/// Stores feedback. Rows of other users are treated as nonexistent. Rows are deleted with their run
/// and thread.
#[async_trait]
pub trait FeedbackStore: Send + Sync + std::fmt::Debug {
    /// Stores the user's feedback on the run, replacing an existing row but keeping its id. Returns
    /// the stored row; `None` if the thread has no such run. A run
    /// [copied into a branch](crate::branches::is_copied_run) has no row: then the thread must
    /// exist.
    async fn put(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError>;
    /// Returns the rows of a run, or of a whole thread, in order of creation.
    async fn list(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        owner: &Owner,
    ) -> Result<Vec<Feedback>, StoreError>;
    /// Deletes the user's rows of a run, or only the one with `id`. Returns `false` if there was
    /// none.
    async fn delete(
        &self,
        thread: &ThreadId,
        run: &RunId,
        id: Option<&str>,
        owner: &Owner,
    ) -> Result<bool, StoreError>;
}
