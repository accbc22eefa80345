//! Scheduled runs: crons, their store, and the scheduler.

mod in_memory;
mod schedule;
mod scheduler;

pub use in_memory::InMemoryCronStore;
pub use schedule::{Schedule, ScheduleError};
pub use scheduler::{CronRunner, Scheduler, StartError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::{KeyState, RequestKey, StoreError};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Action on the thread of a firing after its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// Deletes the thread after the run.
    Delete,
    /// Keeps the thread.
    Keep,
}

impl AfterRun {
    /// Returns the value used on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Keep => "keep",
        }
    }

    /// Parses the value used on the wire and in the store.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Delete, Self::Keep]
            .into_iter()
            .find(|after| after.as_str() == word)
    }
}

/// Run request that is repeated on a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    /// Id.
    pub cron_id: Uuid,
    /// Owner of the cron and of its runs.
    pub user_id: String,
    /// Assistant id as clients see it.
    pub assistant_id: String,
    /// Thread of its runs; without one, each firing creates a thread.
    pub thread_id: Option<ThreadId>,
    /// Cron expression: minute, hour, day of month, month, day of week.
    pub schedule: String,
    /// IANA time zone of the schedule; UTC if absent.
    pub timezone: Option<String>,
    /// Time after which it does not fire.
    pub end_time: Option<DateTime<Utc>>,
    /// Action on the created thread; only for crons without a thread.
    pub on_run_completed: Option<AfterRun>,
    /// `false` if the cron is switched off.
    pub enabled: bool,
    /// Metadata for display and filters.
    pub metadata: Map<String, Value>,
    /// Run request as received.
    pub payload: Map<String, Value>,
    /// Next firing; `None` means never.
    pub next_run_date: Option<DateTime<Utc>>,
    /// Creation time.
    pub created_at: DateTime<Utc>,
    /// Time of the owner's last change.
    pub updated_at: DateTime<Utc>,
}

/// Sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CronSort {
    /// Creation time.
    #[default]
    CreatedAt,
    /// Time of the last change.
    UpdatedAt,
    /// Id.
    CronId,
    /// Assistant id.
    AssistantId,
    /// Thread id.
    ThreadId,
    /// Time of the next firing.
    NextRunDate,
    /// End time.
    EndTime,
}

/// Filters, order and page of a search for one user's crons.
#[derive(Debug, Clone, Default)]
pub struct CronSearch {
    /// Returns only crons of this assistant.
    pub assistant_id: Option<String>,
    /// Returns only crons on this thread.
    pub thread_id: Option<ThreadId>,
    /// Returns only crons that are enabled, or only disabled ones.
    pub enabled: Option<bool>,
    /// Returns only crons whose metadata contains this.
    pub metadata: Map<String, Value>,
    /// Sort key; ties are ordered by id, descending.
    pub sort_by: CronSort,
    /// Ascending order instead of descending.
    pub ascending: bool,
    /// Maximum number of results.
    pub limit: usize,
    /// Number of results to skip.
    pub offset: usize,
}

impl CronSearch {
    /// Reports whether a cron passes the filters.
    pub fn matches(&self, cron: &Cron) -> bool {
        self.assistant_id
            .as_ref()
            .is_none_or(|assistant| *assistant == cron.assistant_id)
            && self
                .thread_id
                .as_ref()
                .is_none_or(|thread| cron.thread_id.as_ref() == Some(thread))
            && self.enabled.is_none_or(|enabled| enabled == cron.enabled)
            && self.metadata_matches(&cron.metadata)
    }

    /// Reports whether metadata passes the metadata filter.
    pub fn metadata_matches(&self, metadata: &Map<String, Value>) -> bool {
        self.metadata.iter().all(|(key, pattern)| {
            metadata
                .get(key)
                .is_some_and(|value| contains_at_least(value, pattern))
        })
    }

    /// Filters, sorts and pages the crons of a user.
    pub fn apply(&self, crons: Vec<Cron>) -> Vec<Cron> {
        let mut matching: Vec<Cron> = crons
            .into_iter()
            .filter(|cron| self.matches(cron))
            .collect();
        matching.sort_by(|one, other| {
            let order = match self.sort_by {
                CronSort::CreatedAt => one.created_at.cmp(&other.created_at),
                CronSort::UpdatedAt => one.updated_at.cmp(&other.updated_at),
                CronSort::CronId => one.cron_id.cmp(&other.cron_id),
                CronSort::AssistantId => one.assistant_id.cmp(&other.assistant_id),
                CronSort::ThreadId => one.thread_id.cmp(&other.thread_id),
                CronSort::NextRunDate => one.next_run_date.cmp(&other.next_run_date),
                CronSort::EndTime => one.end_time.cmp(&other.end_time),
            };
            let order = if self.ascending {
                order
            } else {
                order.reverse()
            };
            order.then_with(|| other.cron_id.cmp(&one.cron_id))
        });
        matching
            .into_iter()
            .skip(self.offset)
            .take(self.limit)
            .collect()
    }
}

/// Compares objects key by key, where `value` may have more keys, and any other value for equality.
fn contains_at_least(value: &Value, pattern: &Value) -> bool {
    match (value, pattern) {
        (Value::Object(value), Value::Object(pattern)) => pattern.iter().all(|(key, pattern)| {
            value
                .get(key)
                .is_some_and(|value| contains_at_least(value, pattern))
        }),
        _ => value == pattern,
    }
}

/// Firing that is ready to be claimed.
#[derive(Debug, Clone, PartialEq)]
pub struct DueFiring {
    /// Cron that fires.
    pub cron: Cron,
    /// Scheduled time.
    pub fires_for: DateTime<Utc>,
    /// Time of an earlier claim that was not finished.
    pub claimed_at: Option<DateTime<Utc>>,
}

/// Result of a create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// Created.
    New,
    /// The thread does not exist or belongs to another user; nothing was written.
    NoThread,
    /// The idempotency key is known; nothing else was checked.
    Known(KeyState),
}

/// Stores crons. Crons of other users are treated as nonexistent. A cron is deleted with its
/// thread.
#[async_trait]
pub trait CronStore: Send + Sync + std::fmt::Debug {
    /// Stores a new cron with the idempotency key of its request, unless that key is known.
    async fn create(&self, cron: Cron, request: Option<RequestKey>) -> Result<Created, StoreError>;
    /// Returns one cron.
    async fn get(&self, user: &str, cron: Uuid) -> Result<Option<Cron>, StoreError>;
    /// Returns the crons that match.
    async fn search(&self, user: &str, search: &CronSearch) -> Result<Vec<Cron>, StoreError>;
    /// Counts all matches, ignoring limit and offset.
    async fn count(&self, user: &str, search: &CronSearch) -> Result<u64, StoreError>;
    /// Replaces a cron unless it has changed since `seen`. The next firing changes only with
    /// `reschedule`.
    async fn update(
        &self,
        cron: Cron,
        seen: DateTime<Utc>,
        reschedule: bool,
    ) -> Result<bool, StoreError>;
    /// Deletes a cron; returns `false` if it did not exist.
    async fn delete(&self, user: &str, cron: Uuid) -> Result<bool, StoreError>;
    /// Returns firings due at `at` of users without a disabled account, and their firings claimed
    /// before `claimed_before` and not finished, in order of their scheduled time. If there are more
    /// than `limit`, those of crons without an unfinished claim come first, then those with the
    /// oldest claim.
    async fn due(
        &self,
        at: DateTime<Utc>,
        claimed_before: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<DueFiring>, StoreError>;
    /// Claims a firing and sets the cron's next firing to `next`, atomically. Of concurrent callers
    /// only one gets `true`, and none while the account of the user is disabled.
    async fn claim(
        &self,
        due: &DueFiring,
        next: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
    /// Marks a claimed firing as finished.
    async fn finish(&self, cron: Uuid, fires_for: DateTime<Utc>) -> Result<(), StoreError>;
}
