//! Journal of a thread: an append-only list of the events of its runs.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::definition::{EventContent, StoreError};
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

/// Categories of journal events.
pub mod category {
    /// Messages, from which the transcript is read.
    pub const MESSAGE: &str = "message";
    /// Technical trace.
    pub const TRACE: &str = "trace";
    /// Final results.
    pub const OUTPUTS: &str = "outputs";
    /// Failures.
    pub const ERROR: &str = "error";
    /// Activity of subagents.
    pub const SUBAGENT: &str = "subagent";
    /// Digests of the context that models received in addition to the conversation.
    pub const CONTEXT: &str = "context";
    /// Model usage outside of runs.
    pub const USAGE: &str = "usage";
    /// Changes of the files of a thread.
    pub const WORKSPACE: &str = "workspace";
    /// Actions of middlewares.
    pub const MIDDLEWARE: &str = "middleware";
}

/// Type of the rows with the progress of nodes, as
/// [`AgentEvent::NodeEvent`](crate::agent::AgentEvent::NodeEvent) emits it.
pub const NODE_EVENT: &str = "node.event";
/// Type of the row after the last one with the progress of nodes: more are not stored.
pub const NODE_EVENTS_OMITTED: &str = "node.events_omitted";

/// Type of the row with the files that a run changed, and key of the report in its metadata.
pub const WORKSPACE_CHANGES: &str = "workspace_changes";

/// Event to be appended to the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRunEvent {
    /// Id of the thread.
    pub thread_id: ThreadId,
    /// Id of the run.
    pub run_id: RunId,
    /// Id of the user who owns the thread.
    pub user_id: Option<String>,
    /// Type of the event, such as `llm.ai.response`; at most 32 characters.
    pub event_type: String,
    /// Category of the event, see [`category`]; at most 16 characters.
    pub category: String,
    /// Content, any JSON.
    pub content: EventContent,
    /// Facts about the event, such as `caller` and `usage`.
    pub metadata: Map<String, Value>,
    /// Time of the event.
    pub created_at: DateTime<Utc>,
}

/// Event of the journal. `seq` increases strictly per thread, across runs and processes.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// Position in the thread's journal, from 1.
    pub seq: u64,
    /// Content of the journal entry.
    pub event: NewRunEvent,
}

/// Selection of a limited query when more events match than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The oldest matches, in ascending order.
    #[default]
    Oldest,
    /// The newest matches, also in ascending order: a page from the end.
    Newest,
}

/// Filter of journal events.
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
    /// Maximum number of events; 100 by default.
    pub limit: usize,
    /// Selection when there are more events than `limit`.
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

/// Store of the journal.
///
/// Guarantees: an appended batch is durable when the call returns, complete and in order; `seq` is
/// unique within a thread; returned rows are copies; a thread of another user reads as empty.
///
/// ```
/// use chrono::DateTime;
/// use deerflow_core::actor_context::Owner;
/// use deerflow_core::ids::{RunId, ThreadId};
/// use deerflow_runtime::in_memory::InMemoryStores;
/// use deerflow_runtime::runs::store::{EventQuery, NewRunEvent, RunEventStore, category};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (events, thread_id) = (InMemoryStores::new(), ThreadId::parse("t1")?);
/// let event = NewRunEvent {
///     thread_id: thread_id.clone(),
///     run_id: RunId::parse("r1")?,
///     user_id: Some("ann".to_owned()),
///     event_type: "llm.ai.response".to_owned(),
///     category: category::MESSAGE.to_owned(),
///     content: serde_json::json!("Hello").into(),
///     metadata: Default::default(),
///     created_at: DateTime::UNIX_EPOCH,
/// };
/// assert_eq!(events.append(vec![event]).await?, [1]);
/// let of = |user: &str| Owner::User(user.to_owned());
/// assert_eq!(events.list(&thread_id, &EventQuery::default(), &of("ann")).await?.len(), 1);
/// assert_eq!(events.list(&thread_id, &EventQuery::default(), &of("bob")).await?.len(), 0);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait RunEventStore: Send + Sync + std::fmt::Debug {
    /// Appends a batch and returns the `seq` of each event.
    async fn append(&self, events: Vec<NewRunEvent>) -> Result<Vec<u64>, StoreError>;

    /// Lists events of a thread, always in ascending order of `seq`.
    async fn list(
        &self,
        thread: &ThreadId,
        query: &EventQuery,
        owner: &Owner,
    ) -> Result<Vec<RunEvent>, StoreError>;

    /// Counts the events of category `message` in a thread.
    async fn count_messages(&self, thread: &ThreadId, owner: &Owner) -> Result<u64, StoreError>;

    /// Removes the events of one run.
    async fn delete_run(&self, thread: &ThreadId, run: &RunId) -> Result<(), StoreError>;

    /// Removes the events of a thread.
    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError>;
}
