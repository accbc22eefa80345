//! What users think of answers: at most one row per user and run.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::store::StoreError;

/// Thumbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rating {
    /// Up.
    Up,
    /// Down.
    Down,
}

impl Rating {
    /// The number on the wire and in the store.
    pub fn as_number(self) -> i64 {
        match self {
            Self::Up => 1,
            Self::Down => -1,
        }
    }

    /// Reads the number.
    pub fn from_number(number: i64) -> Option<Self> {
        match number {
            1 => Some(Self::Up),
            -1 => Some(Self::Down),
            _ => None,
        }
    }
}

/// What a user thinks of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// Its own id. Stays when the user thinks again.
    pub feedback_id: String,
    /// The thread of the run.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Who thinks so.
    pub user_id: String,
    /// The message that is meant, if not the run's last answer.
    pub message_id: Option<String>,
    /// Up or down.
    pub rating: Rating,
    /// Why.
    pub comment: Option<String>,
    /// When it was given, or given again.
    pub created_at: DateTime<Utc>,
}

/// Keeps feedback. Another user's rows are as if they did not exist. Rows go with their run and with their thread.
#[async_trait]
pub trait FeedbackStore: Send + Sync + std::fmt::Debug {
    /// Writes the user's row of the run, in the place of the one that is there, whose id it keeps. Gives back what is stored then;
    /// `None` when the thread has no such run.
    async fn put(&self, feedback: Feedback) -> Result<Option<Feedback>, StoreError>;
    /// The rows of a run, or of a whole thread, in the order in which they were given.
    async fn list(
        &self,
        thread: &ThreadId,
        run: Option<&RunId>,
        owner: &Owner,
    ) -> Result<Vec<Feedback>, StoreError>;
    /// Removes rows of a run, only the one with `id` if that is given. `false` when there was none.
    async fn delete(
        &self,
        thread: &ThreadId,
        run: &RunId,
        id: Option<&str>,
        owner: &Owner,
    ) -> Result<bool, StoreError>;
}
