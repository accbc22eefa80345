//! Operations of the process that embeds the runtime: startup, shutdown, lease and limits.

use std::sync::Arc;

use crate::definition::{RunLimits, StoreError};
use crate::dispatch::dispatcher;
use crate::failover::recovery;
use crate::kernel::{LeaseStatus, RunError, Runtime, StopSignal};
use crate::membership::join;
use crate::stream_bridge::BridgeError;

/// Startup, shutdown, lease and limits of the runtime in one process.
#[derive(Debug, Clone)]
pub struct NodeLifecycle {
    runtime: Arc<Runtime>,
}

impl NodeLifecycle {
    /// Creates the handle of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: runtime.clone(),
        }
    }

    /// Registers this process, resumes orphaned runs and starts the dispatcher of queued runs.
    /// Called once, before the first request. Returns the number of runs that were taken over.
    pub async fn recover(&self) -> Result<usize, RunError> {
        join::join(&self.runtime, self.limits().lease).await?;
        recovery::register_queued(&self.runtime).await?;
        let orphaned = dispatcher::take_over(&self.runtime).await?;
        dispatcher::start(&self.runtime);
        Ok(orphaned)
    }

    /// Registers this process as [`NodeLifecycle::recover`] does, but does not start the
    /// dispatcher: other processes start the queued runs. The dispatcher starts when a run that
    /// this process creates is queued. Orphaned runs are taken over only in an exclusive store,
    /// because no other process would resume them, and their threads would stay busy. Returns the
    /// number of runs that were taken over.
    pub async fn join(&self) -> Result<usize, RunError> {
        join::join(&self.runtime, self.limits().lease).await?;
        if self.runtime.registry.node_lease.is_shared() {
            return Ok(0);
        }
        dispatcher::take_over(&self.runtime).await
    }

    /// Releases every run that is executed here, so that another process or the next start resumes
    /// it. Shutdown calls this when its grace period ends. The progress of each run is stored
    /// before its release.
    pub fn release_all(&self) {
        for (_, active) in self.runtime.registry.active.executed() {
            active.stop(StopSignal::Release);
        }
    }

    /// Returns the state of this process's lease, or `None` if the store is exclusive.
    pub fn lease(&self) -> Option<LeaseStatus> {
        self.runtime.registry.node_lease.lease()
    }

    /// Reports whether another process has taken the store lock of this one. This process admits no
    /// runs then.
    pub fn is_displaced(&self) -> bool {
        self.runtime.registry.node_lease.is_displaced()
    }

    /// Returns the number of runs that are executed here.
    pub fn live_runs(&self) -> usize {
        self.runtime.registry.active.executed().len()
    }

    /// Returns the number of run attempts that block a thread of this process for longer than the
    /// limit. It includes attempts that were given up.
    pub fn stalled_runs(&self) -> usize {
        self.runtime.registry.polled.stalled_count()
    }

    /// Returns the limits of new runs.
    pub fn limits(&self) -> RunLimits {
        *self.runtime.registry.limits.read()
    }

    /// Sets the limits for runs that are created from now on.
    pub fn set_limits(&self, limits: RunLimits) {
        *self.runtime.registry.limits.write() = limits;
    }

    /// Checks that the store of nodes responds.
    pub async fn check_store(&self) -> Result<(), StoreError> {
        self.runtime.ports.nodes.list().await.map(drop)
    }

    /// Checks that the stream bridge responds.
    pub async fn check_bridge(&self) -> Result<(), BridgeError> {
        self.runtime.ports.bridge.ping().await
    }
}
