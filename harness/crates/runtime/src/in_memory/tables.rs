//! Data of the in-memory stores.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::run_table::RunTable;
use crate::checkpoint::{CheckpointMeta, LogRange};
use crate::definition::{RequestKey, ThreadStatus};
use crate::ports::{AuxiliaryUsage, CreatedResource, RunEvent, WebhookDelivery};
use crate::stream_bridge::{StreamEvent, TerminalKind};
use deerflow_core::ids::{CheckpointId, NodeId, RunId, ThreadId};
use deerflow_core::messages::Message;

/// Stores of runs, journal and checkpoints in memory. Clones share their data, which is dropped
/// with the last clone.
#[derive(Debug, Clone, Default)]
pub struct InMemoryStores(pub(super) Arc<Mutex<Tables>>);

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) threads: BTreeMap<ThreadId, Thread>,
    pub(super) runs: RunTable,
    pub(super) outbox: BTreeMap<RunId, OutboxEntry>,
    pub(super) requests: HashMap<Scope, RequestRow>,
    pub(super) nodes: BTreeMap<NodeId, Node>,
    pub(super) streams: HashMap<RunId, Stream>,
    pub(super) auxiliary: BTreeMap<String, AuxiliaryUsage>,
    /// `true` if several runtimes share the stores.
    pub(super) shared: bool,
    /// Counts admissions, to order runs that were created at the same time.
    pub(super) admitted: u64,
}

/// A registered runtime. Its lease expires only if the stores are shared.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) since: DateTime<Utc>,
    pub(super) renewed_at: DateTime<Utc>,
    pub(super) until: Option<Instant>,
}

/// An undelivered webhook call; a dead letter if `due_at` is `None`.
#[derive(Debug)]
pub(super) struct OutboxEntry {
    pub(super) delivery: WebhookDelivery,
    pub(super) due_at: Option<DateTime<Utc>>,
    pub(super) died: Option<DateTime<Utc>>,
    pub(super) last_error: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) user_id: Option<String>,
    pub(super) status: ThreadStatus,
    /// `true` if the thread is deleted with its last run.
    pub(super) temporary: bool,
    pub(super) title: Option<String>,
    /// Time of creation, if the thread was created before its first run.
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) log: BTreeMap<u64, Message>,
    pub(super) checkpoints: BTreeMap<CheckpointId, StoredCheckpoint>,
    pub(super) events: Vec<RunEvent>,
    pub(super) last_seq: u64,
}

#[derive(Debug, Clone)]
pub(super) struct StoredCheckpoint {
    pub(super) meta: CheckpointMeta,
    pub(super) channels: Arc<IndexMap<String, serde_json::Value>>,
    /// Number of messages of each history.
    pub(super) histories: Option<serde_json::Value>,
    pub(super) layout: Vec<LogRange>,
}

/// The resource that a request created, and the final state of its run.
#[derive(Debug)]
pub(super) struct RequestRow {
    pub(super) key: RequestKey,
    pub(super) resource: CreatedResource,
    pub(super) values: Option<Bytes>,
}

/// User, route, name and part of a key.
pub(super) type Scope = (String, String, String, u32);

/// Events of one run by sequence number, and the end of its stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) events: BTreeMap<u64, StreamEvent>,
    pub(super) end: Option<(u64, TerminalKind)>,
}
