//! This process among others that work on the same store: its lease, the runs it owns, and what it loses with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parking_lot::RwLock;
use tokio::time::Instant;

use super::bell::Ring;
use super::keeper::Keeper;
use super::parts::RuntimeParts;
use super::registry::RunRegistry;
use super::store::{Lease, StoreError};
use crate::ids::NodeId;
use crate::runtime::fail_points;
use crate::runtime::tasks::TaskKind;

/// The part of its lease by which a process stops earlier by itself: what it has begun ends before others begin.
const MARGIN: f64 = 0.2;

/// Under which id this process owns runs.
#[derive(Debug)]
pub(super) struct Membership {
    node: RwLock<NodeId>,
    shared: AtomicBool,
    /// Whether another process works here that must not do so beside this one.
    displaced: AtomicBool,
    /// How often this process came back to a store that another one may have left runs in.
    returns: AtomicU32,
    /// After which return it last took over what was left.
    searched: AtomicU32,
    /// When the last renewal that was confirmed was sent, and for how long it holds.
    confirmed: RwLock<Option<(Instant, Duration)>>,
}

/// How a process stands with its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseView {
    /// Since when it was not renewed.
    pub age: Duration,
    /// How long it holds.
    pub ttl: Duration,
}

/// How long a process works under a lease after it sent for it.
fn usable(ttl: Duration) -> Duration {
    ttl.mul_f64(1.0 - MARGIN)
}

impl LeaseView {
    /// Whether the process still works under it.
    pub fn holds(&self) -> bool {
        self.age < usable(self.ttl)
    }
}

impl Membership {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node: RwLock::new(node),
            shared: AtomicBool::new(false),
            displaced: AtomicBool::new(false),
            returns: AtomicU32::new(0),
            searched: AtomicU32::new(0),
            confirmed: RwLock::default(),
        }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node.read().clone()
    }

    /// Whether runs that are taken under this id are this process's to begin: a pause may have cost it its lease, and it need not
    /// have noticed yet.
    pub(super) fn holds(&self, node: &NodeId) -> bool {
        *self.node.read() == *node && self.lease().is_none_or(|lease| lease.holds())
    }

    /// Whether nothing may be begun here: another process has the store.
    pub(super) fn is_displaced(&self) -> bool {
        self.displaced.load(Ordering::Acquire)
    }

    /// Whether runs are likely to have been left by others: always where others may be there, else after each return.
    pub(super) fn may_find_left(&self) -> bool {
        self.is_shared() || self.returns() != self.searched.load(Ordering::Acquire)
    }

    pub(super) fn returns(&self) -> u32 {
        self.returns.load(Ordering::Acquire)
    }

    /// Everything was taken over that had been left when this process had come back so often.
    pub(super) fn has_searched(&self, returns: u32) {
        self.searched.store(returns, Ordering::Release);
    }

    /// Another process has the store. `true` when that is new.
    pub(super) fn displace(&self) -> bool {
        !self.displaced.swap(true, Ordering::AcqRel)
    }

    /// This process has a place again, under another id. The registration was sent at `sent`.
    pub(super) fn come_back(&self, node: NodeId, sent: Instant, ttl: Duration) {
        *self.node.write() = node;
        self.confirm(sent, ttl);
        self.returns.fetch_add(1, Ordering::AcqRel);
        self.displaced.store(false, Ordering::Release);
    }

    /// A renewal or a registration was confirmed that was sent at `sent`.
    pub(super) fn confirm(&self, sent: Instant, ttl: Duration) {
        *self.confirmed.write() = Some((sent, ttl));
    }

    /// When everything here must have stopped, unless the lease is renewed before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| sent + usable(ttl))
    }

    /// How this process stands with its lease, if it needs one.
    pub(super) fn lease(&self) -> Option<LeaseView> {
        let confirmed = *self.confirmed.read();
        confirmed
            .filter(|_| self.is_shared())
            .map(|(sent, ttl)| LeaseView {
                age: sent.elapsed(),
                ttl,
            })
    }

    /// Whether other processes may work on the same store.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Enters this process, and keeps it entered until its last run has left it after the runtime was told to stop.
pub(super) async fn join(
    registry: &Arc<RunRegistry>,
    ttl: Duration,
    parts: &RuntimeParts,
) -> Result<(), StoreError> {
    let sent = Instant::now();
    let lease = parts
        .nodes
        .register(&registry.membership.node(), ttl)
        .await?;
    fail_points::pass("node.joined");
    registry.membership.confirm(sent, ttl);
    registry
        .membership
        .shared
        .store(lease != Lease::Alone, Ordering::Release);
    let mut keeper = Keeper::new(registry.clone(), parts.clone(), ttl);
    parts
        .tasks
        .spawn(TaskKind::Control, "membership", async move {
            keeper.keep().await
        });
    let (registry, rings, stop) = (
        registry.clone(),
        parts.bell.listen(),
        parts.tasks.token().clone(),
    );
    parts
        .tasks
        .spawn(TaskKind::Service, "node bell", async move {
            stop.run_until_cancelled(answer(&registry, rings)).await
        });
    Ok(())
}

/// Looks at what others rang for, if it is of interest here.
async fn answer(registry: &RunRegistry, mut rings: BoxStream<'static, Ring>) {
    while let Some(ring) = rings.next().await {
        match ring {
            Ring::Cancelled(run) if registry.live(&run).is_some() => registry.look.notify_one(),
            Ring::Cancelled(_) => {}
            Ring::Waiting => registry.doorbell.ring(),
            Ring::Ended(_) if registry.live.any_waiting() => registry.doorbell.ring(),
            Ring::Ended(_) => {}
            Ring::Missed => {
                registry.look.notify_one();
                registry.doorbell.ring();
            }
        }
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
