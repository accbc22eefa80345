//! Contract suites: the guarantees of the ports, as functions that every implementation runs.
//!
//! To use one, write a function that opens a fresh [`RunStores`], and expand the suite's macro with
//! it, for example `deerflow_runtime::run_store_suite!([#[tokio::test]] open_my_stores);`. Each
//! guarantee becomes a test of its name. The opened stores must not share data with other calls;
//! resources that must stay alive go into [`RunStores::keep`].

pub mod checkpoint_history;
pub mod checkpointer;
pub mod memories;
pub mod memory_updates;
pub mod node_notifier;
pub mod nodes;
pub mod repeated_commits;
pub mod requests;
pub mod run_events;
pub mod run_queue;
pub mod run_store;
pub use deerflow_core::testkit::seeded_rng;
pub mod stream_bridge;
pub mod stream_log;
pub mod tool_ledger;
pub mod webhooks;

use std::any::Any;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use crate::checkpoint::{CheckpointMeta, CheckpointSource, CheckpointWrite, Checkpointer};
use crate::in_memory::InMemoryStores;
use crate::runs::store::{
    EventQuery, NewRun, NewRunEvent, NodeStore, RequestStore, RunCommit, RunCommitStore,
    RunCreateStore, RunDeleteStore, RunEnd, RunEventStore, RunQueryStore, StoredRunRequest,
    ToolLedger, WebhookOutbox, category,
};
use crate::runs::{
    IfNotExists, MultitaskStrategy, RunCompletionData, RunConfig, RunPresentation, RunRecord,
    RunRequest, RunScope, RunStatus, ThreadStatus, UserRunLimits,
};
use crate::stream_bridge::StreamLog;
use crate::user_memory::{MemoryScope, MemoryUpdate};
use deerflow_core::actor_context::ActorContext;
use deerflow_core::ids::{CheckpointId, NodeId, RunId, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::state::ThreadState;
use deerflow_core::tasks::{TaskKind, Tasks};

/// Ports of one store, opened fresh for one test.
#[derive(Debug, Clone)]
pub struct RunStores {
    /// Admission of runs.
    pub create: Arc<dyn RunCreateStore>,
    /// Commits of runs.
    pub commit: Arc<dyn RunCommitStore>,
    /// Queries of runs.
    pub query: Arc<dyn RunQueryStore>,
    /// Deletion of runs.
    pub delete: Arc<dyn RunDeleteStore>,
    /// Tool calls of earlier attempts.
    pub ledger: Arc<dyn ToolLedger>,
    /// Leases of nodes.
    pub nodes: Arc<dyn NodeStore>,
    /// Journal of run events.
    pub events: Arc<dyn RunEventStore>,
    /// Outbox of webhook calls.
    pub webhooks: Arc<dyn WebhookOutbox>,
    /// Idempotency keys of requests.
    pub requests: Arc<dyn RequestStore>,
    /// Durable logs of streams.
    pub streams: Arc<dyn StreamLog>,
    /// Checkpoints of threads.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// Resources that must live as long as the stores: a directory, tasks.
    pub keep: Arc<dyn Keep>,
}

/// Ports that are all implemented by the same in-memory stores; the suite of one port replaces it.
impl From<InMemoryStores> for RunStores {
    fn from(stores: InMemoryStores) -> Self {
        let stores = Arc::new(stores);
        Self {
            create: stores.clone(),
            commit: stores.clone(),
            query: stores.clone(),
            delete: stores.clone(),
            ledger: stores.clone(),
            nodes: stores.clone(),
            events: stores.clone(),
            webhooks: stores.clone(),
            requests: stores.clone(),
            streams: stores.clone(),
            checkpoints: stores,
            keep: Arc::new(()),
        }
    }
}

/// Resource that only has to be alive, such as a temporary directory.
pub trait Keep: Any + Send + Sync + std::fmt::Debug {}

impl<T: Any + Send + Sync + std::fmt::Debug> Keep for T {}

/// User on behalf of whom the suites act.
pub const USER: &str = "ann";

/// Returns the `n`th time of a test, in the precision of stores.
pub fn at(n: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(1_700_000_000_000_000 + n * 1_000_001)
        .expect("a moment of this century")
}

/// Returns a thread id.
pub fn thread(name: &str) -> ThreadId {
    ThreadId::parse(name).expect("a plain id")
}

/// Returns a node id.
pub fn node(name: &str) -> NodeId {
    NodeId::parse(name).expect("a plain id")
}

/// Returns a run id.
pub fn run(name: &str) -> RunId {
    RunId::parse(name).expect("a plain id")
}

/// Returns the `n`th checkpoint id; ids sort by `n`.
pub fn checkpoint(n: u64) -> CheckpointId {
    CheckpointId::parse(format!("c{n:08}")).expect("a plain id")
}

/// Returns a run of [`USER`] on a thread that is created if missing.
pub fn new_run(id: &str, on: &str) -> NewRun {
    NewRun {
        run_id: run(id),
        thread_id: thread(on),
        user_id: Some(USER.to_owned()),
        recipe: Arc::new(stored_request(id, on)),
        owner: node("n1"),
        most_waiting: 16,
        per_user: UserRunLimits::default(),
        created_at: at(0),
        at: at(0),
    }
}

/// Returns the run with a changed request.
pub fn with_request(mut new: NewRun, change: impl FnOnce(&mut RunRequest)) -> NewRun {
    change(&mut Arc::make_mut(&mut new.recipe).spec);
    new
}

/// Returns the run with this strategy for a busy thread.
pub fn with_strategy(new: NewRun, multitask: MultitaskStrategy) -> NewRun {
    with_request(new, |request| request.multitask = multitask)
}

/// Returns the run on a thread that is deleted with it.
pub fn on_temporary_thread(new: NewRun) -> NewRun {
    with_request(new, |request| {
        request.scope = RunScope::Stateless { temporary: true };
    })
}

/// Returns the run on a thread that must exist.
pub fn on_existing_thread(new: NewRun) -> NewRun {
    let thread_id = new.thread_id.clone();
    with_request(new, |request| {
        request.scope = RunScope::Stateful {
            thread_id,
            if_not_exists: IfNotExists::Reject,
        };
    })
}

/// Returns the stored request of a queued run of [`USER`].
pub fn stored_request(id: &str, on: &str) -> StoredRunRequest {
    let spec = RunRequest {
        run_id: Some(run(id)),
        config: RunConfig {
            options: object(json!({"model_name": "small"})),
            ..RunConfig::default()
        },
        metadata: object(json!({"k": "v", "n": 1})),
        presentation: RunPresentation {
            request_echo: json!({"input": {"messages": [{"role": "user", "content": "hi"}]}})
                .into(),
            ..RunPresentation::default()
        },
        ..RunRequest::ask("lead_agent", thread(on), message("m", "hi"))
    };
    StoredRunRequest {
        spec,
        actor: ActorContext::user(USER),
        pin: None,
    }
}

/// Returns the record of a run of [`USER`] that owns its thread.
pub fn record(id: &str, on: &str) -> RunRecord {
    let new = new_run(id, on);
    let request = new.request().clone();
    RunRecord {
        run_id: new.run_id,
        thread_id: new.thread_id,
        assistant: request.assistant,
        user_id: new.user_id,
        status: RunStatus::Starting,
        attempt: 1,
        metadata: request.metadata,
        kwargs: request.presentation.request_echo,
        multitask: request.multitask,
        model_name: Some("small".to_owned()),
        webhook: None,
        cancel: None,
        error: None,
        error_name: None,
        stop_reason: None,
        completion: RunCompletionData::default(),
        created_at: new.created_at,
        updated_at: new.at,
    }
}

/// Returns an empty commit of a run.
pub fn commit_of(run: &RunRecord) -> RunCommit {
    RunCommit::new(
        run.run_id.clone(),
        run.thread_id.clone(),
        run.attempt,
        at(5),
    )
}

/// Returns the end of a run with this status.
pub fn end_in(status: RunStatus) -> RunEnd {
    RunEnd {
        status,
        error: None,
        error_name: None,
        stop_reason: None,
        completion: RunCompletionData::default(),
        thread_status: ThreadStatus::after(status, false),
        title: None,
        webhook: None,
        kept_values: None,
        discard_checkpoints: false,
        forget_calls: false,
    }
}

/// Returns an update of the memory of [`USER`], due at `at(due)`.
pub fn memory_update(due: i64) -> Box<MemoryUpdate> {
    Box::new(MemoryUpdate {
        scope: MemoryScope::of_user(USER),
        due: at(due),
    })
}

/// Returns a message event of [`USER`].
pub fn event(on: &str, of: &str, text: &str) -> NewRunEvent {
    NewRunEvent {
        thread_id: thread(on),
        run_id: run(of),
        user_id: Some(USER.to_owned()),
        event_type: "llm.ai.response".to_owned(),
        category: category::MESSAGE.to_owned(),
        content: json!({"text": text}).into(),
        metadata: object(json!({"caller": "lead_agent"})),
        created_at: at(3),
    }
}

/// Returns a query for all events, oldest first.
pub fn all_events() -> EventQuery {
    EventQuery {
        limit: 10_000,
        ..EventQuery::default()
    }
}

/// Plans the write of checkpoint `n` of a run with the state `state`.
pub fn checkpoint_write(
    on: &str,
    of: Option<&str>,
    n: u64,
    state: &mut ThreadState,
    log_tail: &mut u64,
) -> CheckpointWrite {
    let meta = CheckpointMeta {
        checkpoint_id: checkpoint(n),
        thread_id: thread(on),
        parent_id: n.checked_sub(1).map(checkpoint),
        run_id: of.map(run),
        source: CheckpointSource::Loop,
        step: i64::try_from(n).unwrap_or_default(),
        next: vec![],
        machine: Some(json!({"at": n})),
        metadata: object(json!({"n": n, "even": n.is_multiple_of(2)})),
        created_at: at(4),
    };
    CheckpointWrite::plan(meta, state, log_tail)
}

/// Returns a message with an id.
pub fn message(id: &str, text: &str) -> Message {
    Message::human(text).with(|body| body.id = Some(id.to_owned()))
}

/// Returns the entries of a JSON object.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Runs all of `work` concurrently, each in its own task.
pub async fn at_once<T: Send + 'static>(
    work: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks = Tasks::new();
    let running: Vec<_> = work
        .into_iter()
        .map(|one| tasks.spawn(TaskKind::Finish, "contract", one))
        .collect();
    let mut results = Vec::with_capacity(running.len());
    for task in running {
        results.push(
            task.await
                .expect("the task was not aborted")
                .expect("the task did not panic"),
        );
    }
    results
}

/// Expands to one test per guarantee. Used by the macros of the suites.
#[macro_export]
#[doc(hidden)]
macro_rules! promises {
    ($attrs:tt $open:expr, $path:tt $($name:ident)*) => {
        $( $crate::promise! { $attrs $open, $path $name } )*
    };
}

/// Expands to the test of one guarantee.
#[macro_export]
#[doc(hidden)]
macro_rules! promise {
    ([$($attr:tt)*] $open:expr, [$($path:tt)*] $name:ident) => {
        $($attr)*
        async fn $name() {
            $($path)*::$name($open).await;
        }
    };
}
