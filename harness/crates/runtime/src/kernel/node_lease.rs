//! Lease of this process in a store that other processes may share, and the decisions that depend
//! on the lease.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;

use deerflow_core::ids::NodeId;

/// Fraction of the lease that remains unused: this process stops its runs that much earlier, so
/// that they have ended when others take over.
const MARGIN: f64 = 0.2;

/// Node id under which this process owns runs, and the state of its lease.
#[derive(Debug)]
pub(crate) struct NodeLease {
    node: RwLock<NodeId>,
    shared: AtomicBool,
    /// `true` while another process holds the store lock of this one.
    displaced: AtomicBool,
    /// Number of registrations after the first. Before each of them, other processes may have used
    /// the store, and their runs may be orphaned.
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

/// Returns the time for which a process may execute runs under a lease of `ttl`, counted from the
/// request of the lease.
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
    pub(crate) fn new(node: NodeId) -> Self {
        Self {
            node: RwLock::new(node),
            shared: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            rejoin_count: AtomicU32::new(0),
            searched: AtomicU32::new(0),
            confirmed: RwLock::default(),
        }
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node.read().clone()
    }

    /// Reports whether this process may start runs that were claimed under the id `node`: the id is
    /// current, and its lease has not expired, for example during a pause of the process.
    pub(crate) fn holds(&self, node: &NodeId) -> bool {
        *self.node.read() == *node && self.lease().is_none_or(|lease| lease.holds())
    }

    /// Reports whether another process holds the store lock, so that no run may be started here.
    pub(crate) fn is_displaced(&self) -> bool {
        self.displaced.load(Ordering::Acquire)
    }

    /// Reports whether orphaned runs are likely: always in a shared store, otherwise after each new
    /// registration.
    pub(crate) fn may_have_orphans(&self) -> bool {
        self.is_shared() || self.rejoin_count() != self.searched.load(Ordering::Acquire)
    }

    pub(crate) fn rejoin_count(&self) -> u32 {
        self.rejoin_count.load(Ordering::Acquire)
    }

    /// Records that all runs that were orphaned at the registration `rejoin_count` have been taken
    /// over.
    pub(crate) fn mark_searched(&self, rejoin_count: u32) {
        self.searched.store(rejoin_count, Ordering::Release);
    }

    /// Records that another process holds the store lock. Returns `true` if this was not recorded
    /// before.
    pub(crate) fn displace(&self) -> bool {
        !self.displaced.swap(true, Ordering::AcqRel)
    }

    /// Records a new registration under another node id. Its request was sent at `sent`.
    pub(crate) fn rejoin(&self, node: NodeId, sent: Instant, ttl: Duration) {
        *self.node.write() = node;
        self.confirm(sent, ttl);
        self.rejoin_count.fetch_add(1, Ordering::AcqRel);
        self.displaced.store(false, Ordering::Release);
    }

    /// Records a confirmed renewal or registration. Its request was sent at `sent`.
    pub(crate) fn confirm(&self, sent: Instant, ttl: Duration) {
        *self.confirmed.write() = Some((sent, ttl));
    }

    /// Returns the time at which all runs must have stopped unless the lease is renewed. `None` in
    /// an exclusive store.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| sent + usable(ttl))
    }

    /// Returns the state of the lease. `None` in an exclusive store.
    pub(crate) fn lease(&self) -> Option<LeaseStatus> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| LeaseStatus {
                age: sent.elapsed(),
                ttl,
            })
    }

    /// Records whether other processes may use the same store.
    pub(crate) fn set_shared(&self, shared: bool) {
        self.shared.store(shared, Ordering::Release);
    }

    /// Reports whether other processes may use the same store.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}
