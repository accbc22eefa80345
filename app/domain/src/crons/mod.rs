//! Runs by the clock: when they are due, and who starts them.

mod memory;
mod schedule;
mod scheduler;

pub use memory::MemoryCronStore;
pub use schedule::{Schedule, ScheduleError};
pub use scheduler::{CronRunner, Scheduler, StartError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use harness::ids::ThreadId;
use harness::runtime::runs::store::{Known, RequestKey, StoreError};
use serde_json::{Map, Value};
use uuid::Uuid;

/// What becomes of the thread that a firing was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRun {
    /// It goes with its run.
    Delete,
    /// It stays.
    Keep,
}

impl AfterRun {
    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Keep => "keep",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Delete, Self::Keep]
            .into_iter()
            .find(|after| after.as_str() == word)
    }
}

/// A run request that is repeated by the clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Cron {
    /// Its id.
    pub cron_id: Uuid,
    /// Whose it is; its runs are theirs.
    pub user_id: String,
    /// The assistant's id on the wire.
    pub assistant_id: String,
    /// The thread of its runs; without one every firing gets a thread of its own.
    pub thread_id: Option<ThreadId>,
    /// Minute, hour, day of the month, month, day of the week.
    pub schedule: String,
    /// Where the clock hangs that the schedule means; UTC without.
    pub timezone: Option<String>,
    /// It does not fire later.
    pub end_time: Option<DateTime<Utc>>,
    /// For crons without a thread.
    pub on_run_completed: Option<AfterRun>,
    /// Whether it fires at all.
    pub enabled: bool,
    /// For people and filters.
    pub metadata: Map<String, Value>,
    /// The request as it came.
    pub payload: Map<String, Value>,
    /// When it fires next; never again without.
    pub next_run_date: Option<DateTime<Utc>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When its owner last changed it.
    pub updated_at: DateTime<Utc>,
}

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CronSort {
    /// The making.
    #[default]
    CreatedAt,
    /// The last change.
    UpdatedAt,
    /// The id.
    CronId,
    /// The assistant.
    AssistantId,
    /// The thread.
    ThreadId,
    /// The next firing.
    NextRunDate,
    /// The end.
    EndTime,
}

/// Which of a user's crons.
#[derive(Debug, Clone, Default)]
pub struct CronSearch {
    /// Of this assistant.
    pub assistant_id: Option<String>,
    /// On this thread.
    pub thread_id: Option<ThreadId>,
    /// Switched on, or off.
    pub enabled: Option<bool>,
    /// Whose metadata holds at least this.
    pub metadata: Map<String, Value>,
    /// What to sort by; ties go to the greater id.
    pub sort_by: CronSort,
    /// Smallest first.
    pub ascending: bool,
    /// At most so many.
    pub limit: usize,
    /// After so many others.
    pub offset: usize,
}

impl CronSearch {
    /// Whether a cron fits.
    pub fn matches(&self, cron: &Cron) -> bool {
        self.assistant_id
            .as_ref()
            .is_none_or(|assistant| *assistant == cron.assistant_id)
            && self
                .thread_id
                .as_ref()
                .is_none_or(|thread| cron.thread_id.as_ref() == Some(thread))
            && self.enabled.is_none_or(|enabled| enabled == cron.enabled)
            && self.describes(&cron.metadata)
    }

    /// Whether metadata holds what is wanted of it.
    pub fn describes(&self, metadata: &Map<String, Value>) -> bool {
        self.metadata
            .iter()
            .all(|(key, wanted)| metadata.get(key).is_some_and(|found| holds(found, wanted)))
    }

    /// The wanted part of a user's crons.
    pub fn answer(&self, crons: Vec<Cron>) -> Vec<Cron> {
        let mut found: Vec<Cron> = crons
            .into_iter()
            .filter(|cron| self.matches(cron))
            .collect();
        found.sort_by(|one, other| {
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
        found
            .into_iter()
            .skip(self.offset)
            .take(self.limit)
            .collect()
    }
}

/// Whether JSON holds at least the wanted: objects key by key, anything else as it is.
fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| found.get(key).is_some_and(|found| holds(found, wanted))),
        _ => found == wanted,
    }
}

/// A firing that waits for somebody to see to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// What fires.
    pub cron: Cron,
    /// The time it fires for.
    pub fires_for: DateTime<Utc>,
    /// When somebody took it who has not been heard of since.
    pub taken_at: Option<DateTime<Utc>>,
}

/// What a create found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is new.
    New,
    /// Its thread does not exist or is not its user's; nothing was written.
    NoThread,
    /// The request's key is known; nothing was looked at besides.
    Known(Known),
}

/// Keeps crons. Calls that name a user mean that user's; another user's cron is as if it did not exist. A cron goes with its thread.
#[async_trait]
pub trait CronStore: Send + Sync + std::fmt::Debug {
    /// Writes a new one, and the key of the request for it, if that is not known.
    async fn create(&self, cron: Cron, request: Option<RequestKey>) -> Result<Created, StoreError>;
    /// One.
    async fn get(&self, user: &str, cron: Uuid) -> Result<Option<Cron>, StoreError>;
    /// Those that fit.
    async fn search(&self, user: &str, search: &CronSearch) -> Result<Vec<Cron>, StoreError>;
    /// How many fit, limit and offset aside.
    async fn count(&self, user: &str, search: &CronSearch) -> Result<u64, StoreError>;
    /// Writes a changed one, if nobody changed it since `seen`. Its next firing moves only with `reschedule`.
    async fn update(
        &self,
        cron: Cron,
        seen: DateTime<Utc>,
        reschedule: bool,
    ) -> Result<bool, StoreError>;
    /// Removes one; `false` when there was none.
    async fn delete(&self, user: &str, cron: Uuid) -> Result<bool, StoreError>;
    /// What has to fire at `at`, and what was taken before `lost` and not finished; the longest due first.
    async fn due(
        &self,
        at: DateTime<Utc>,
        lost: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<Due>, StoreError>;
    /// Takes a firing, and moves the cron on to `next` in the same statement. Of all who try only one is told `true`.
    async fn take(
        &self,
        due: &Due,
        next: Option<DateTime<Utc>>,
        at: DateTime<Utc>,
    ) -> Result<bool, StoreError>;
    /// A taken firing was seen to.
    async fn finish(&self, cron: Uuid, fires_for: DateTime<Utc>) -> Result<(), StoreError>;
}
