//! State of the runs in this process: handles of queued and executed runs, limits, and the lease.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::{Notify, broadcast};

use super::active_run::{ActiveRun, ActiveRuns};
use super::dispatch_wake::DispatchWake;
use super::finalization_guard::FinalizationGuards;
use super::node_lease::NodeLease;
use super::polled_runs::PolledRuns;
use super::status_poller::StatusPollers;
use super::thread_heads::ThreadHeads;
use crate::definition::RunLimits;
use deerflow_core::ids::{NodeId, RunId, ThreadId};

/// Handles of queued and executed runs, and the state that decides about them.
#[derive(Debug)]
pub struct RunRegistry {
    /// Limits of the runs that start from now on.
    pub(crate) limits: RwLock<RunLimits>,
    pub(crate) active: ActiveRuns,
    /// Tasks of runs, also of attempts that this process no longer owns.
    pub(crate) polled: PolledRuns,
    pub(crate) dispatch_wake: DispatchWake,
    /// Makes the lease keeper read the runs of this node at once.
    pub(crate) lease_wake: Notify,
    pub(crate) node_lease: NodeLease,
    pub(crate) finalization: FinalizationGuards,
    pub(crate) pollers: StatusPollers,
    /// States of threads for their next runs.
    pub(crate) heads: ThreadHeads,
    /// Announces the threads on which a run starts here.
    pub(crate) launches: broadcast::Sender<ThreadId>,
}

/// Capacity of the launch announcements. A thread subscriber that falls behind polls the store.
const LAUNCH_CHANNEL_CAPACITY: usize = 256;

impl RunRegistry {
    /// Creates an empty registry for the process `node`.
    pub(crate) fn new(node: NodeId, limits: RunLimits) -> Self {
        Self {
            heads: ThreadHeads::bounded(limits.thread_states_bytes),
            limits: RwLock::new(limits),
            active: ActiveRuns::default(),
            polled: PolledRuns::default(),
            dispatch_wake: DispatchWake::default(),
            lease_wake: Notify::new(),
            node_lease: NodeLease::new(node),
            finalization: FinalizationGuards::default(),
            pollers: StatusPollers::default(),
            launches: broadcast::Sender::new(LAUNCH_CHANNEL_CAPACITY),
        }
    }

    pub(crate) fn active(&self, run_id: &RunId) -> Option<Arc<ActiveRun>> {
        self.active.get(run_id)
    }
}
