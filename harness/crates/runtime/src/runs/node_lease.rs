//! Lease of this process in a store that other processes may share, and the decisions that depend
//! on the lease.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parking_lot::RwLock;
use tokio::time::Instant;

use super::lease_keeper::LeaseKeeper;
use super::node_notifier::WakeSignal;
use super::ports::RuntimePorts;
use super::registry::RunRegistry;
use super::store::{Lease, StoreError};
use deerflow_core::fail_points;
use deerflow_core::ids::NodeId;
use deerflow_core::tasks::TaskKind;

/// Fraction of the lease that remains unused: this process stops its runs that much earlier, so
/// that they have ended when others take over.
const MARGIN: f64 = 0.2;

/// Node id under which this process owns runs, and the state of its lease.
#[derive(Debug)]
pub(super) struct NodeLease {
    node: RwLock<NodeId>,
    shared: AtomicBool,
    /// `true` while another process holds the store lock of this one.
    displaced: AtomicBool,
    /// Number of registrations after the first. Other processes may have caused orphaned runs in
    /// the meantime.
    rejoin_count: AtomicU32,
    /// Value of `rejoin_count` at the last complete takeover round.
    searched: AtomicU32,
    /// Send time of the last confirmed renewal, and its duration.
    confirmed: RwLock<Option<(Instant, Duration)>>,
}

/// State of a process's lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseStatus {
    /// Time since the last confirmed renewal.
    pub age: Duration,
    /// Duration of the lease.
    pub ttl: Duration,
}

/// Time that a process may work under a lease, from the request of the lease.
fn usable(ttl: Duration) -> Duration {
    ttl.mul_f64(1.0 - MARGIN)
}

impl LeaseStatus {
    /// Reports whether the process may still work under the lease.
    pub fn holds(&self) -> bool {
        self.age < usable(self.ttl)
    }
}

impl NodeLease {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node: RwLock::new(node),
            shared: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            rejoin_count: AtomicU32::new(0),
            searched: AtomicU32::new(0),
            confirmed: RwLock::default(),
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node.read().clone()
    }

    /// Reports whether this process may start runs that were claimed under the id `node`. After a
    /// pause of the process its lease may have expired unnoticed.
    pub(super) fn holds(&self, node: &NodeId) -> bool {
        *self.node.read() == *node && self.lease().is_none_or(|lease| lease.holds())
    }

    /// Reports whether another process holds the store lock, so that no run may be started here.
    pub(super) fn is_displaced(&self) -> bool {
        self.displaced.load(Ordering::Acquire)
    }

    /// Reports whether orphaned runs are likely: always in a shared store, otherwise after each new
    /// registration.
    pub(super) fn may_have_orphans(&self) -> bool {
        self.is_shared() || self.rejoin_count() != self.searched.load(Ordering::Acquire)
    }

    pub(super) fn rejoin_count(&self) -> u32 {
        self.rejoin_count.load(Ordering::Acquire)
    }

    /// Records that all runs were taken over that were orphaned at this registration.
    pub(super) fn mark_searched(&self, rejoin_count: u32) {
        self.searched.store(rejoin_count, Ordering::Release);
    }

    /// Records that another process holds the store lock. Returns `true` if this was not recorded
    /// before.
    pub(super) fn displace(&self) -> bool {
        !self.displaced.swap(true, Ordering::AcqRel)
    }

    /// Records a new registration under another node id. Its request was sent at `sent`.
    pub(super) fn rejoin(&self, node: NodeId, sent: Instant, ttl: Duration) {
        *self.node.write() = node;
        self.confirm(sent, ttl);
        self.rejoin_count.fetch_add(1, Ordering::AcqRel);
        self.displaced.store(false, Ordering::Release);
    }

    /// Records a confirmed renewal or registration. Its request was sent at `sent`.
    pub(super) fn confirm(&self, sent: Instant, ttl: Duration) {
        *self.confirmed.write() = Some((sent, ttl));
    }

    /// Returns the time at which all runs must have stopped unless the lease is renewed. `None` in
    /// an exclusive store.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| sent + usable(ttl))
    }

    /// Returns the state of the lease. `None` in an exclusive store.
    pub(super) fn lease(&self) -> Option<LeaseStatus> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| LeaseStatus {
                age: sent.elapsed(),
                ttl,
            })
    }

    /// Reports whether other processes may use the same store.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Registers this process and spawns the tasks that renew its lease and handle wake-up signals. The
/// lease is released after shutdown, when the last run has ended here.
pub(super) async fn join(
    registry: &Arc<RunRegistry>,
    ttl: Duration,
    ports: &RuntimePorts,
) -> Result<(), StoreError> {
    let sent = Instant::now();
    let lease = ports
        .nodes
        .register(&registry.node_lease.node(), ttl)
        .await?;
    fail_points::pass("node.joined");
    registry.node_lease.confirm(sent, ttl);
    registry
        .node_lease
        .shared
        .store(lease != Lease::Alone, Ordering::Release);
    let mut keeper = LeaseKeeper::new(registry.clone(), ports.clone(), ttl);
    ports
        .tasks
        .spawn(TaskKind::Control, "lease keeper", async move {
            keeper.run().await
        });
    let (registry, signals, stop) = (
        registry.clone(),
        ports.bell.listen(),
        ports.tasks.token().clone(),
    );
    ports
        .tasks
        .spawn(TaskKind::Service, "wake-up signals", async move {
            stop.run_until_cancelled(apply_signals(&registry, signals))
                .await
        });
    Ok(())
}

/// Wakes the lease keeper or the dispatcher for signals that concern this process.
async fn apply_signals(registry: &RunRegistry, mut signals: BoxStream<'static, WakeSignal>) {
    while let Some(signal) = signals.next().await {
        match signal {
            WakeSignal::Cancelled(run) if registry.active(&run).is_some() => {
                registry.lease_wake.notify_one()
            }
            WakeSignal::Cancelled(_) => {}
            WakeSignal::Waiting => registry.dispatch_wake.wake(),
            WakeSignal::Ended(_) if registry.active.any_waiting() => registry.dispatch_wake.wake(),
            WakeSignal::Ended(_) => {}
            WakeSignal::Missed => {
                registry.lease_wake.notify_one();
                registry.dispatch_wake.wake();
            }
        }
    }
}

#[cfg(test)]
#[path = "node_lease_tests.rs"]
mod tests;
