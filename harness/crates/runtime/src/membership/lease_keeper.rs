//! Renews this node's lease, applies cancel requests, and stops local runs before the lease
//! expires.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::failover::orphaned_attempt;
use crate::kernel::{RunRegistry, Runtime, StopSignal};
use crate::ports::StoreLockStatus;
use deerflow_core::ids::RunId;

/// Fraction of the lease after which it is renewed. Also the timeout of a store call.
const RENEW_FRACTION: f64 = 0.3;
/// Interval at which the owned runs are read, in a shared and in an exclusive store. Bounds the
/// delay of cancels that other processes request.
const SYNC_SHARED: Duration = Duration::from_millis(500);
const SYNC_EXCLUSIVE: Duration = Duration::from_secs(10);
/// Interval and timeout of the check that this process still holds its store lock.
const EXCLUSIVE_CHECK_INTERVAL: Duration = Duration::from_secs(2);
const EXCLUSIVE_CHECK_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause of the loop during shutdown.
const SYNC_SHUTDOWN: Duration = Duration::from_millis(20);

/// Lease step that is retried until it succeeds. While a registration is pending, the keeper does
/// nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingLeaseStep {
    None,
    /// The lease has to be renewed, because it is unknown whether it is still valid.
    Renewal,
    /// The lease is lost, or another process holds the store lock. No run is executed here until
    /// this process registers again.
    Registration,
}

/// The lease may expire before it is renewed.
#[derive(Debug)]
struct LeaseExpiring;

pub(crate) struct LeaseKeeper {
    runtime: Arc<Runtime>,
    ttl: Duration,
    pending_step: PendingLeaseStep,
    /// Times of the last exclusivity check and of the last full read of the owned runs.
    exclusive_checked_at: Instant,
    synced_at: Instant,
    /// Runs that this process owned at the last read without executing them.
    orphans: HashSet<RunId>,
}

impl LeaseKeeper {
    pub(crate) fn new(runtime: Arc<Runtime>, ttl: Duration) -> Self {
        let now = Instant::now();
        Self {
            runtime,
            ttl,
            pending_step: PendingLeaseStep::None,
            exclusive_checked_at: now,
            synced_at: now,
            orphans: HashSet::new(),
        }
    }

    pub(crate) async fn run(&mut self) {
        let stop = self.runtime.ports.tasks.token().clone();
        let shared = self.runtime.registry.node_lease.is_shared();
        loop {
            if stop.is_cancelled() && self.runtime.registry.active.executed().is_empty() {
                return self.deregister().await;
            }
            let pause = match (stop.is_cancelled(), shared) {
                // Short at shutdown, so that the end of the last run is noticed soon.
                (true, _) => SYNC_SHUTDOWN,
                (false, true) => SYNC_SHARED,
                (false, false) => EXCLUSIVE_CHECK_INTERVAL,
            };
            let signalled = tokio::select! {
                biased;
                () = stop.cancelled(), if !stop.is_cancelled() => continue,
                () = self.runtime.registry.lease_wake.notified() => true,
                () = sleep(pause) => false,
            };
            if self.pending_step == PendingLeaseStep::Registration {
                self.register().await;
                continue;
            }
            let runtime = self.runtime.clone();
            if run_within_lease(&runtime.registry, self.step(signalled))
                .await
                .is_err()
            {
                tracing::error!("the lease of this process is about to expire: stopping its runs");
                self.give_up_lease().await;
            }
        }
    }

    async fn step(&mut self, signalled: bool) {
        if self.exclusive_checked_at.elapsed() >= EXCLUSIVE_CHECK_INTERVAL {
            self.check_exclusive().await;
        }
        let aged = self
            .runtime
            .registry
            .node_lease
            .lease()
            .is_some_and(|lease| lease.age >= self.call_timeout());
        if self.pending_step == PendingLeaseStep::Renewal
            || (aged && self.pending_step == PendingLeaseStep::None)
        {
            self.renew().await;
        }
        let must_sync = signalled
            || self.runtime.registry.node_lease.is_shared()
            || self.synced_at.elapsed() >= SYNC_EXCLUSIVE;
        if must_sync && self.pending_step != PendingLeaseStep::Registration {
            self.sync_runs(signalled).await;
        }
    }

    /// Returns the timeout of a store call. After a call has timed out, there is time for another
    /// one before the runs have to stop.
    fn call_timeout(&self) -> Duration {
        self.ttl.mul_f64(RENEW_FRACTION)
    }

    /// Verifies that this process holds its store lock, and takes the lock again if it was lost.
    /// Another process may have used the store in the meantime. Returns `true` if this process
    /// holds the lock.
    async fn check_exclusive(&mut self) -> bool {
        self.exclusive_checked_at = Instant::now();
        let limit = if self.runtime.registry.node_lease.is_shared() {
            EXCLUSIVE_CHECK_TIMEOUT.min(self.call_timeout())
        } else {
            EXCLUSIVE_CHECK_TIMEOUT
        };
        match timeout(limit, self.runtime.ports.nodes.hold()).await {
            Ok(Ok(StoreLockStatus::Lost)) => self.yield_store(),
            Ok(Ok(StoreLockStatus::Retaken))
                if self.pending_step != PendingLeaseStep::Registration =>
            {
                tracing::warn!("the exclusive store lock was lost and taken again");
                self.pending_step = PendingLeaseStep::Renewal;
                return true;
            }
            Ok(Ok(StoreLockStatus::Kept | StoreLockStatus::Retaken)) => return true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot verify the exclusive store lock")
            }
            Err(_) => {
                tracing::warn!("cannot verify the exclusive store lock: the store does not respond")
            }
        }
        false
    }

    /// Stops all runs: no run may be started or continued while another process holds the store
    /// lock.
    fn yield_store(&mut self) {
        if self.runtime.registry.node_lease.displace() {
            tracing::error!(
                "another process has taken the store lock: stopping all runs and admitting none \
                 until that process ends"
            );
        }
        self.pending_step = PendingLeaseStep::Registration;
        self.fence();
    }

    async fn renew(&mut self) {
        let sent = Instant::now();
        let node = self.runtime.registry.node_lease.node();
        match timeout(
            self.call_timeout(),
            self.runtime.ports.nodes.renew(&node, self.ttl),
        )
        .await
        {
            Ok(Ok(true)) => {
                self.runtime.registry.node_lease.confirm(sent, self.ttl);
                self.pending_step = PendingLeaseStep::None;
            }
            Ok(Ok(false)) => {
                tracing::error!(
                    "the lease of this process expired: other processes have taken over its runs"
                );
                self.give_up_lease().await;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot renew the lease of this process yet")
            }
            Err(_) => tracing::warn!(
                "cannot renew the lease of this process yet: the store does not respond"
            ),
        }
    }

    async fn give_up_lease(&mut self) {
        self.pending_step = PendingLeaseStep::Registration;
        self.fence();
        self.register().await;
    }

    /// Stops all runs that are executed here, without further writes to the store.
    fn fence(&self) {
        self.runtime
            .registry
            .active
            .executed()
            .iter()
            .for_each(|(_, active)| active.stop(StopSignal::Fence));
    }

    /// Registers this process under a new node id. An expired lease is never renewed.
    async fn register(&mut self) {
        if !self.check_exclusive().await {
            return;
        }
        let (node, sent) = (self.runtime.ports.ids.node_id(), Instant::now());
        match timeout(
            self.call_timeout(),
            self.runtime.ports.nodes.register(&node, self.ttl),
        )
        .await
        {
            Ok(Ok(_)) => {
                self.runtime
                    .registry
                    .node_lease
                    .rejoin(node, sent, self.ttl);
                self.pending_step = PendingLeaseStep::None;
                self.runtime.registry.dispatch_wake.wake();
                // Runs that were admitted in the meantime belong to the old node id.
                self.fence();
                tracing::warn!("registered this process under a new lease");
            }
            Ok(Err(error)) => tracing::warn!(%error, "cannot register a new lease yet"),
            Err(_) => tracing::warn!("cannot register a new lease yet: the store does not respond"),
        }
    }

    /// Reads the runs that this node owns, applies cancel requests, and stops the runs that it no
    /// longer owns. Owned runs that no task executes are released or ended, but not after a wake-up
    /// signal: it may arrive between a claim and the creation of the handle.
    async fn sync_runs(&mut self, signalled: bool) {
        // Frequent signals must not delay the full read.
        let signalled = signalled && self.synced_at.elapsed() < SYNC_EXCLUSIVE;
        if !signalled {
            self.synced_at = Instant::now();
        }
        // Read before the store call: the result may not contain runs that start in the meantime.
        let executed = self.runtime.registry.active.executed();
        let owned = match timeout(
            self.call_timeout(),
            self.runtime
                .ports
                .nodes
                .owned(&self.runtime.registry.node_lease.node()),
        )
        .await
        {
            Ok(Ok(owned)) => owned,
            Ok(Err(error)) => {
                return tracing::warn!(%error, "cannot read the runs of this process");
            }
            Err(_) => {
                return tracing::warn!(
                    "cannot read the runs of this process: the store does not respond"
                );
            }
        };
        let own: HashSet<_> = owned.iter().map(|run| &run.run_id).collect();
        // This may be a run that has just ended here; stopping it has no effect.
        executed
            .iter()
            .filter(|(run_id, _)| !own.contains(run_id))
            .for_each(|(_, active)| active.stop(StopSignal::Fence));
        let mut orphans = HashSet::new();
        for run in owned {
            // A queued handle belongs to a run whose claim reply was lost.
            match (
                self.runtime
                    .registry
                    .active(&run.run_id)
                    .filter(|active| !active.is_waiting()),
                run.cancel,
            ) {
                (Some(active), Some(action)) => active.stop(StopSignal::Cancel(action)),
                (Some(_), None) => {}
                (None, _) if signalled => {}
                // A run that has just ended here appears as an orphan once.
                (None, _) if !self.orphans.contains(&run.run_id) => {
                    orphans.insert(run.run_id);
                }
                (None, _) => orphaned_attempt::resolve(run, &self.runtime),
            }
        }
        if !signalled {
            self.orphans = orphans;
        }
    }

    async fn deregister(&self) {
        if let Err(error) = self
            .runtime
            .ports
            .nodes
            .leave(&self.runtime.registry.node_lease.node())
            .await
        {
            tracing::warn!(%error, "cannot release the lease of this process; it expires");
        }
    }
}

/// Runs `work` to its end, or fails when the lease is about to expire. The lease may be renewed in
/// the meantime.
async fn run_within_lease<T>(
    registry: &RunRegistry,
    work: impl Future<Output = T>,
) -> Result<T, LeaseExpiring> {
    let mut work = pin!(work);
    while let Some(deadline) = registry.node_lease.deadline() {
        match timeout_at(deadline, &mut work).await {
            Ok(done) => return Ok(done),
            Err(_) if registry.node_lease.deadline() == Some(deadline) => {
                return Err(LeaseExpiring);
            }
            Err(_) => {}
        }
    }
    Ok(work.await)
}
