//! The journal of a thread: an append-only list of what happened in its runs.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::error::StoreError;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::Owner;

/// Categories of journal events.
pub mod category {
    /// Messages: what the transcript is read from.
    pub const MESSAGE: &str = "message";
    /// Technical trace.
    pub const TRACE: &str = "trace";
    /// Final results.
    pub const OUTPUTS: &str = "outputs";
    /// Failures.
    pub const ERROR: &str = "error";
    /// Agents that an agent set to work.
    pub const SUBAGENT: &str = "subagent";
    /// What models were shown besides the conversation, by its digest.
    pub const CONTEXT: &str = "context";
    /// What models cost outside of runs.
    pub const USAGE: &str = "usage";
    /// What middlewares did.
    pub const MIDDLEWARE: &str = "middleware";
}

/// An event to be journaled.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRunEvent {
    /// The thread.
    pub thread_id: ThreadId,
    /// The run.
    pub run_id: RunId,
    /// Whose it is.
    pub user_id: Option<String>,
    /// Such as `llm.ai.response`; at most 32 characters.
    pub event_type: String,
    /// See [`category`]; at most 16 characters.
    pub category: String,
    /// Any JSON.
    pub content: Value,
    /// Facts about it: `caller`, `usage`, ...
    pub metadata: Map<String, Value>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// A journaled event. `seq` rises strictly per thread, across runs and processes.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// Its place in the thread's journal, from 1.
    pub seq: u64,
    /// The event.
    pub event: NewRunEvent,
}

/// Which way to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest that match, ascending.
    #[default]
    Oldest,
    /// The newest that match, but given in ascending order: a page from the end.
    Newest,
}

/// Which events of a thread to read.
#[derive(Debug, Clone)]
pub struct EventQuery {
    /// Only of this run.
    pub run_id: Option<RunId>,
    /// Only of this category.
    pub category: Option<String>,
    /// Only of these types; empty means all.
    pub event_types: Vec<String>,
    /// Only with a greater seq.
    pub after_seq: Option<u64>,
    /// Only with a smaller seq.
    pub before_seq: Option<u64>,
    /// At most this many; a hundred when nobody says.
    pub limit: usize,
    /// Which of them when there are more.
    pub order: Order,
}

impl Default for EventQuery {
    fn default() -> Self {
        Self {
            run_id: None,
            category: None,
            event_types: Vec::new(),
            after_seq: None,
            before_seq: None,
            limit: 100,
            order: Order::default(),
        }
    }
}

/// Keeps the journal.
///
/// Promises: an appended batch is durable when the call returns, whole and in order; `seq` has no duplicates within a thread;
/// rows given out are copies; another user's thread reads as empty.
#[async_trait]
pub trait RunEventStore: Send + Sync + std::fmt::Debug {
    /// Appends a batch and returns the seq of each.
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError>;

    /// Events of a thread, always in ascending order of seq.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError>;

    /// How many events of category `message` a thread has.
    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError>;

    /// Removes the events of one run.
    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError>;

    /// Removes the events of a thread.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
