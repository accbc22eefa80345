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
mod run_table;
mod stream_bridge;
mod streams;
mod tables;
mod threads;
mod webhooks;

use std::sync::Arc;

use parking_lot::Mutex;

pub use node_notifier::InMemoryNodeNotifier;
pub use stream_bridge::{InMemoryOptions, InMemoryStreamBridge, InvalidOption};
pub use tables::InMemoryStores;

use self::tables::Tables;
use crate::agent::AgentResolver;
use crate::definition::{RunRecord, ThreadStatus};
use crate::ports::{NoFileChanges, NullObserver, RuntimePorts};
use deerflow_core::clock::SystemClock;
use deerflow_core::ids::{SystemIds, ThreadId};
use deerflow_core::tasks::Tasks;

/// Creates the ports of a runtime that stores all data in the memory of one process, for programs
/// that embed the harness.
pub fn runtime_in_memory(agents: Arc<dyn AgentResolver>) -> Result<RuntimePorts, InvalidOption> {
    InMemoryStores::new().runtime(agents)
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

    /// Creates the ports of a runtime over these stores, with a bridge and a notifier for one
    /// process.
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
            file_changes: Arc::new(NoFileChanges),
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
