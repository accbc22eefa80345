//! Runs of all users for operators, with the state of their owning process.

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::StoreError;

/// Run in an operator's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// Run id.
    pub run_id: String,
    /// Thread id.
    pub thread_id: String,
    /// Owner.
    pub user_id: Option<String>,
    /// Name of the assistant.
    pub assistant: String,
    /// Stored status.
    pub status: RunStatus,
    /// Current attempt.
    pub attempt: i64,
    /// Number of processes that died while executing it.
    pub losses: i64,
    /// Reason of an early end.
    pub stop_reason: Option<String>,
    /// Process that executes it.
    pub owner: Option<String>,
    /// `true` if that process has a valid lease.
    pub owner_is_alive: bool,
    /// `true` if another run of the thread is active.
    pub is_blocked: bool,
    /// `true` if cancellation was requested.
    pub cancel_requested: bool,
    /// Time of acceptance, or the earliest start time.
    pub created_at: DateTime<Utc>,
    /// Time of its last write.
    pub updated_at: DateTime<Utc>,
}

/// Time allowed for a process to pick up a run before it counts as stuck.
const PICKUP_GRACE: TimeDelta = TimeDelta::seconds(60);

impl RunSummary {
    /// Returns why the run seems to be stuck, if it does. `idle` is the longest time that an active
    /// run may go without a write.
    pub fn stuck_reason(&self, now: DateTime<Utc>, idle: TimeDelta) -> Option<&'static str> {
        let silent = now - self.updated_at;
        match self.status {
            status if status.is_terminal() => None,
            RunStatus::Pending if self.cancel_requested && silent > PICKUP_GRACE => {
                Some("cancellation was requested and not applied")
            }
            RunStatus::Pending
                if !self.is_blocked
                    && now - self.created_at.max(self.updated_at) > PICKUP_GRACE =>
            {
                Some("ready to start, but no node starts it")
            }
            RunStatus::Pending => None,
            _ if self.owner.is_none() || !self.owner_is_alive => {
                Some("no live process executes it")
            }
            _ if silent > idle => Some("no write within the idle time"),
            _ => None,
        }
    }
}

/// Lists runs for operators.
#[async_trait]
pub trait OperationsStore: Send + Sync + std::fmt::Debug {
    /// Returns up to `limit` runs of all users in one of these statuses, newest first.
    async fn runs(
        &self,
        statuses: &[RunStatus],
        limit: usize,
    ) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns up to `limit` poisoned runs of all users, newest first: they exhausted their
    /// attempts.
    async fn poisoned(&self, limit: usize) -> Result<Vec<RunSummary>, StoreError>;
}

#[cfg(test)]
#[path = "operations_tests.rs"]
mod tests;
