//! Ports of the runtime, and the set of its tasks.

use std::sync::Arc;

use super::node_notifier::NodeNotifier;
use super::node_store::NodeStore;
use super::observer::RunObserver;
use super::run_commit_store::RunCommitStore;
use super::run_create_store::RunCreateStore;
use super::run_delete_store::RunDeleteStore;
use super::run_event_store::RunEventStore;
use super::run_file_changes::RunFileChanges;
use super::run_query_store::RunQueryStore;
use crate::agent::{AgentResolver, ToolLedger};
use crate::checkpoint::Checkpointer;
use crate::stream_bridge::StreamBridge;
use deerflow_core::clock::Clock;
use deerflow_core::ids::IdSource;
use deerflow_core::tasks::Tasks;

/// Ports of the runtime. Each field is an implementation chosen by the embedding program.
#[derive(Debug, Clone)]
pub struct RuntimePorts {
    /// Carries events to subscribers.
    pub bridge: Arc<dyn StreamBridge>,
    /// Reads checkpoints, and writes those of clients.
    pub checkpointer: Arc<dyn Checkpointer>,
    /// Admits, queues and claims runs.
    pub create: Arc<dyn RunCreateStore>,
    /// Commits the progress and the end of runs.
    pub commit: Arc<dyn RunCommitStore>,
    /// Reads runs.
    pub query: Arc<dyn RunQueryStore>,
    /// Deletes runs.
    pub delete: Arc<dyn RunDeleteStore>,
    /// Reads the tool calls that earlier attempts recorded.
    pub ledger: Arc<dyn ToolLedger>,
    /// Registers processes and renews their leases.
    pub nodes: Arc<dyn NodeStore>,
    /// Wakes other processes that share the store.
    pub bell: Arc<dyn NodeNotifier>,
    /// Reads and appends to the journal.
    pub events: Arc<dyn RunEventStore>,
    /// Reports what runs changed in the files of their threads.
    pub file_changes: Arc<dyn RunFileChanges>,
    /// Resolves assistants to agents.
    pub agents: Arc<dyn AgentResolver>,
    /// Observes lifecycle events.
    pub observer: Arc<dyn RunObserver>,
    /// Source of the current time.
    pub clock: Arc<dyn Clock>,
    /// Source of ids.
    pub ids: Arc<dyn IdSource>,
    /// Set of the runtime's background tasks.
    pub tasks: Tasks,
}
