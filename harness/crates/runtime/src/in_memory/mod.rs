//! In-memory implementations of the runtime's ports: for a single process, for embedding without a
//! server, and for tests. They satisfy the same contracts as the other stores.

mod auxiliary;
mod calls;
mod checkpoints;
mod events;
mod node_notifier;
mod nodes;
mod requests;
mod run_commit;
mod run_create;
mod run_query;
mod stream_bridge;
mod streams;
mod threads;
mod webhooks;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use node_notifier::InMemoryNodeNotifier;
pub use stream_bridge::{InMemoryOptions, InMemoryStreamBridge, InvalidOption};

use crate::agent::AgentResolver;
use crate::checkpoint::{CheckpointMeta, LogRange};
use crate::runs::store::{
    AuxiliaryUsage, CallProgress, RunEvent, StoredRunRequest, WebhookDelivery,
};
use crate::runs::{NullObserver, RunRecord, RuntimePorts, ThreadStatus};
use deerflow_core::clock::SystemClock;
use deerflow_core::ids::{NodeId, RunId, SystemIds, ThreadId};
use deerflow_core::messages::Message;
use deerflow_core::tasks::Tasks;

/// Creates a runtime of one process that stores all data in memory, for programs that embed the
/// harness.
pub fn runtime_in_memory(agents: Arc<dyn AgentResolver>) -> Result<RuntimePorts, InvalidOption> {
    InMemoryStores::new().runtime(agents)
}

/// Stores of runs, journal and checkpoints in memory. Clones share their data, which is dropped
/// with the last clone.
#[derive(Debug, Clone, Default)]
pub struct InMemoryStores(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    threads: BTreeMap<ThreadId, Thread>,
    runs: BTreeMap<RunId, Run>,
    outbox: BTreeMap<RunId, OutboxEntry>,
    requests: HashMap<requests::Scope, requests::RequestRow>,
    nodes: BTreeMap<NodeId, Node>,
    streams: HashMap<RunId, streams::Stream>,
    auxiliary: BTreeMap<String, AuxiliaryUsage>,
    /// `true` if several runtimes share the stores.
    shared: bool,
    /// Counts admissions, to order runs that were created at the same time.
    admitted: u64,
}

#[derive(Debug)]
struct Run {
    record: RunRecord,
    order: u64,
    /// Earliest start of a delayed run.
    earliest_start: Option<DateTime<Utc>>,
    /// Time of the first start.
    started: Option<DateTime<Utc>>,
    last_batch: u64,
    recipe: Option<Arc<StoredRunRequest>>,
    owner: Option<NodeId>,
    losses: u32,
    calls: HashMap<String, CallProgress>,
}

/// A registered runtime. Its lease expires only if the stores are shared.
#[derive(Debug)]
struct Node {
    since: DateTime<Utc>,
    renewed_at: DateTime<Utc>,
    until: Option<Instant>,
}

/// An undelivered webhook call; a dead letter if `due_at` is `None`.
#[derive(Debug)]
struct OutboxEntry {
    delivery: WebhookDelivery,
    due_at: Option<DateTime<Utc>>,
    died: Option<DateTime<Utc>>,
    last_error: Option<String>,
}

#[derive(Debug, Default)]
struct Thread {
    user_id: Option<String>,
    status: ThreadStatus,
    /// `true` if the thread is deleted with its last run.
    temporary: bool,
    title: Option<String>,
    /// Time of creation, if the thread was created before its first run.
    created_at: Option<DateTime<Utc>>,
    log: BTreeMap<u64, Message>,
    checkpoints: Vec<StoredCheckpoint>,
    events: Vec<RunEvent>,
    last_seq: u64,
}

#[derive(Debug, Clone)]
struct StoredCheckpoint {
    meta: CheckpointMeta,
    channels: serde_json::Map<String, serde_json::Value>,
    layout: Vec<LogRange>,
}

impl InMemoryStores {
    /// Creates empty stores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates empty stores for several runtimes that take over from each other, as processes with
    /// a database do.
    pub fn shared() -> Self {
        Self(Arc::new(Mutex::new(Tables {
            shared: true,
            ..Tables::default()
        })))
    }

    /// Creates a runtime of one process over these stores.
    ///
    /// # Errors
    /// Never with the default options that it uses.
    pub fn runtime(self, agents: Arc<dyn AgentResolver>) -> Result<RuntimePorts, InvalidOption> {
        let stores = Arc::new(self);
        Ok(RuntimePorts {
            bridge: Arc::new(InMemoryStreamBridge::new(InMemoryOptions::default())?),
            checkpointer: stores.clone(),
            create: stores.clone(),
            commit: stores.clone(),
            query: stores.clone(),
            delete: stores.clone(),
            ledger: stores.clone(),
            nodes: stores.clone(),
            bell: Arc::new(InMemoryNodeNotifier::default()),
            events: stores,
            agents,
            observer: Arc::new(NullObserver),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds::default()),
            tasks: Tasks::new(),
        })
    }

    /// Returns a thread's status and title, if the thread is known.
    pub fn thread(&self, thread: &ThreadId) -> Option<(ThreadStatus, Option<String>)> {
        self.0
            .lock()
            .threads
            .get(thread)
            .map(|thread| (thread.status, thread.title.clone()))
    }

    /// Returns all runs in unspecified order.
    pub fn all_runs(&self) -> Vec<RunRecord> {
        self.0
            .lock()
            .runs
            .values()
            .map(|run| run.record.clone())
            .collect()
    }
}

#[cfg(test)]
mod contract_tests;
