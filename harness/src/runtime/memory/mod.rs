//! The runtime's ports in memory: for one process, for embedding without a server, and for tests. Products, not mocks.

mod asides;
mod bell;
mod calls;
mod checkpoints;
mod events;
mod nodes;
mod requests;
mod runs;
mod stream_bridge;
mod streams;
mod threads;
mod webhooks;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use bell::MemoryNodeBell;
pub use stream_bridge::{InvalidOption, MemoryOptions, MemoryStreamBridge};

use crate::clock::SystemClock;
use crate::ids::{NodeId, RunId, SystemIds, ThreadId};
use crate::messages::Message;
use crate::runtime::agent::AgentResolver;
use crate::runtime::checkpoint::{CheckpointMeta, LogRange};
use crate::runtime::runs::store::{AsideCost, CallProgress, Recipe, RunEvent, WebhookDelivery};
use crate::runtime::runs::{NullObserver, RunRecord, RuntimeParts, ThreadStatus};
use crate::runtime::tasks::Tasks;

/// A runtime of one process that keeps everything in memory: what an embedding program starts with.
pub fn runtime_in_memory(agents: Arc<dyn AgentResolver>) -> Result<RuntimeParts, InvalidOption> {
    MemoryStores::new().runtime(agents)
}

/// Runs, journal and checkpoints of one process. Clones share what they hold; it is gone with the last of them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStores(Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
struct Tables {
    threads: BTreeMap<ThreadId, Thread>,
    runs: BTreeMap<RunId, Run>,
    outbox: BTreeMap<RunId, Call>,
    requests: HashMap<requests::Scope, requests::Request>,
    nodes: BTreeMap<NodeId, Node>,
    streams: HashMap<RunId, streams::Stream>,
    asides: BTreeMap<String, AsideCost>,
    /// Whether several runtimes work on them.
    shared: bool,
    /// Counts admissions, to tell the order of runs that were made at the same moment.
    admitted: u64,
}

#[derive(Debug)]
struct Run {
    record: RunRecord,
    order: u64,
    /// Before this it must not begin.
    due: Option<DateTime<Utc>>,
    /// When it was first at work.
    started: Option<DateTime<Utc>>,
    last_batch: u64,
    recipe: Option<Arc<Recipe>>,
    owner: Option<NodeId>,
    losses: u32,
    calls: HashMap<String, CallProgress>,
}

/// A runtime that works on the stores, until its lease lapses if there may be others.
#[derive(Debug)]
struct Node {
    since: DateTime<Utc>,
    renewed_at: DateTime<Utc>,
    until: Option<Instant>,
}

/// A call that was not taken yet; without a moment it is given up.
#[derive(Debug)]
struct Call {
    delivery: WebhookDelivery,
    due: Option<DateTime<Utc>>,
    died: Option<DateTime<Utc>>,
    last_error: Option<String>,
}

#[derive(Debug, Default)]
struct Thread {
    user_id: Option<String>,
    status: ThreadStatus,
    /// Whether it goes with its last run.
    temporary: bool,
    title: Option<String>,
    /// When it was made, if it was before its first run.
    made_at: Option<DateTime<Utc>>,
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

impl MemoryStores {
    /// Empty stores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empty stores for several runtimes that take over from each other, as processes with a database do.
    pub fn shared() -> Self {
        Self(Arc::new(Mutex::new(Tables {
            shared: true,
            ..Tables::default()
        })))
    }

    /// A runtime of one process over these stores.
    ///
    /// # Errors
    /// Never with the options that it takes itself.
    pub fn runtime(self, agents: Arc<dyn AgentResolver>) -> Result<RuntimeParts, InvalidOption> {
        let stores = Arc::new(self);
        Ok(RuntimeParts {
            bridge: Arc::new(MemoryStreamBridge::new(MemoryOptions::default())?),
            checkpointer: stores.clone(),
            create: stores.clone(),
            commit: stores.clone(),
            query: stores.clone(),
            delete: stores.clone(),
            ledger: stores.clone(),
            nodes: stores.clone(),
            bell: Arc::new(MemoryNodeBell::default()),
            events: stores,
            agents,
            observer: Arc::new(NullObserver),
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds::default()),
            tasks: Tasks::new(),
        })
    }

    /// A thread's status and title, if the thread is known.
    pub fn thread(&self, thread: &ThreadId) -> Option<(ThreadStatus, Option<String>)> {
        self.0
            .lock()
            .threads
            .get(thread)
            .map(|thread| (thread.status, thread.title.clone()))
    }

    /// All runs, in no order.
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
