//! This process among others that work on the same store: its lease, the runs it owns, and what it loses with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parking_lot::RwLock;
use tokio::time::Instant;

use super::bell::Ring;
use super::live::Stop;
use super::parts::RuntimeParts;
use super::queue::end_unexecuted;
use super::registry::RunRegistry;
use super::store::{CommitError, Hold, Lease, OwnedRun, RunCommit, StoreError};
use crate::ids::{NodeId, RunId};
use crate::runtime::actor_context::Owner;
use crate::runtime::tasks::TaskKind;

/// The part of its lease by which a process stops earlier by itself: what it has begun ends before others begin.
const MARGIN: f64 = 0.2;
/// The part of its lease after which it says that it lives.
const RENEW: f64 = 0.3;
/// How often it looks what became of its runs, with others and alone: cancels asked for elsewhere are seen by then.
const LOOK_SHARED: Duration = Duration::from_millis(500);
const LOOK_ALONE: Duration = Duration::from_secs(10);
/// How often it asks whether others that must not be there are still kept out, and how long it waits for the answer.
const HOLD: Duration = Duration::from_secs(2);
const HOLD_LIMIT: Duration = Duration::from_secs(8);
/// How often while the process ends.
const LOOK_LAST: Duration = Duration::from_millis(20);

/// Under which id this process owns runs.
#[derive(Debug)]
pub(super) struct Membership {
    node: RwLock<NodeId>,
    shared: AtomicBool,
    /// Whether another process works here that must not do so beside this one.
    displaced: AtomicBool,
    /// Whether this process came back to a store that another one may have left runs in.
    returned: AtomicBool,
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

impl LeaseView {
    /// Whether the process still works under it.
    pub fn holds(&self) -> bool {
        self.age < self.ttl.mul_f64(1.0 - MARGIN)
    }
}

impl Membership {
    pub(super) fn new(node: NodeId) -> Self {
        let no = || AtomicBool::new(false);
        Self { node: RwLock::new(node), shared: no(), displaced: no(), returned: no(), confirmed: RwLock::default() }
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

    /// Whether runs may have been left by others: always where others may be there, else once after each return.
    pub(super) fn may_find_left(&self) -> bool {
        self.is_shared() || self.returned.swap(false, Ordering::AcqRel)
    }

    /// How this process stands with its lease, if it needs one.
    pub(super) fn lease(&self) -> Option<LeaseView> {
        let confirmed = *self.confirmed.read();
        confirmed.filter(|_| self.is_shared()).map(|(sent, ttl)| LeaseView { age: sent.elapsed(), ttl })
    }

    /// Whether other processes may work on the same store.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.load(Ordering::Acquire)
    }
}

/// Enters this process, and keeps it entered until its last run has left it after the runtime was told to stop.
pub(super) async fn join(registry: &Arc<RunRegistry>, ttl: Duration, parts: &RuntimeParts) -> Result<(), StoreError> {
    let sent = Instant::now();
    let lease = parts.nodes.register(&registry.membership.node(), ttl).await?;
    let shared = lease != Lease::Alone;
    *registry.membership.confirmed.write() = Some((sent, ttl));
    registry.membership.shared.store(shared, Ordering::Release);
    let mut keeper =
        Keeper { registry: registry.clone(), parts: parts.clone(), ttl, shared, sent, held: sent, looked: sent, strays: HashSet::new() };
    parts.tasks.spawn(TaskKind::Service, "membership", async move { keeper.keep().await });
    let (registry, rings, stop) = (registry.clone(), parts.bell.listen(), parts.tasks.token().clone());
    parts.tasks.spawn(TaskKind::Service, "node bell", async move { stop.run_until_cancelled(answer(&registry, rings)).await });
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

struct Keeper {
    registry: Arc<RunRegistry>,
    parts: RuntimeParts,
    ttl: Duration,
    shared: bool,
    /// When the last renewal that was confirmed was sent.
    sent: Instant,
    /// When it last asked whether others are kept out, and when it last looked what became of its runs.
    held: Instant,
    looked: Instant,
    /// Runs that this process owned without working on them when it last looked.
    strays: HashSet<RunId>,
}

impl Keeper {
    async fn keep(&mut self) {
        let stop = self.parts.tasks.token().clone();
        let pause = if self.shared { LOOK_SHARED } else { HOLD };
        loop {
            if stop.is_cancelled() && self.registry.live.executed().is_empty() {
                return self.leave().await;
            }
            // While the process ends, its last run is not waited for longer than it takes.
            let pause = if stop.is_cancelled() { LOOK_LAST } else { pause };
            let rang = tokio::select! {
                biased;
                () = stop.cancelled(), if !stop.is_cancelled() => continue,
                () = self.registry.look.notified() => true,
                () = tokio::time::sleep(pause) => false,
            };
            if !self.shared || self.registry.membership.is_displaced() {
                self.hold_and_look(rang).await;
                continue;
            }
            let deadline = self.sent + self.ttl.mul_f64(1.0 - MARGIN);
            if tokio::time::timeout_at(deadline, self.renew_and_look(rang)).await.is_err() {
                tracing::error!("the lease of this process is about to lapse: its runs are given up for others to take");
                self.fence();
                self.enter_anew().await;
            }
        }
    }

    /// Where no lease lapses: alone, or while there is none.
    async fn hold_and_look(&mut self, rang: bool) {
        if self.held.elapsed() >= HOLD && tokio::time::timeout(HOLD_LIMIT, self.hold()).await.is_err() {
            tracing::warn!("whether this process still has its store cannot be found out: the store does not answer");
        }
        if !self.registry.membership.is_displaced() && (rang || self.looked.elapsed() >= LOOK_ALONE) {
            self.look(rang).await;
        }
    }

    /// Sees to it that others are kept out that must not be there. Where that broke, one of them may have come.
    async fn hold(&mut self) {
        self.held = Instant::now();
        match self.parts.nodes.hold().await {
            Ok(Hold::Kept) => {}
            Ok(Hold::Retaken) if self.registry.membership.is_displaced() => self.enter_anew().await,
            Ok(Hold::Retaken) => {
                tracing::warn!("the session that keeps this process's place in its store broke, and is there again");
                self.renew().await;
            }
            Ok(Hold::Lost) => self.make_way(),
            Err(error) => tracing::warn!(%error, "whether this process still has its store cannot be found out"),
        }
    }

    /// Nothing is begun or gone on with here while another process has the store.
    fn make_way(&self) {
        if !self.registry.membership.displaced.swap(true, Ordering::AcqRel) {
            tracing::error!(
                "another process has taken the store of this one, which it must not share with it: runs here are given up and none is \
                 admitted until that process ends"
            );
        }
        self.fence();
    }

    async fn renew_and_look(&mut self, rang: bool) {
        if self.held.elapsed() >= HOLD {
            self.hold().await;
        }
        if self.registry.membership.is_displaced() {
            return;
        }
        if self.sent.elapsed() >= self.ttl.mul_f64(RENEW) {
            self.renew().await;
        }
        self.look(rang).await;
    }

    async fn renew(&mut self) {
        let sent = Instant::now();
        match self.parts.nodes.renew(&self.registry.membership.node(), self.ttl).await {
            Ok(true) => self.confirm(sent),
            Ok(false) => {
                tracing::error!("the lease of this process lapsed: others have taken its runs");
                self.fence();
                self.enter_anew().await;
            }
            Err(error) => tracing::warn!(%error, "the lease of this process is not renewed yet"),
        }
    }

    /// A renewal or a registration was confirmed that was sent at `sent`.
    fn confirm(&mut self, sent: Instant) {
        self.sent = sent;
        *self.registry.membership.confirmed.write() = Some((sent, self.ttl));
    }

    /// Stops everything that is executed here, without another word to the store.
    fn fence(&self) {
        self.registry.live.executed().iter().for_each(|(_, live)| live.stop(Stop::Fence));
    }

    /// A lease that lapsed is never revived: the process comes back as another one.
    async fn enter_anew(&mut self) {
        let node = self.parts.ids.node_id();
        loop {
            let sent = Instant::now();
            match tokio::time::timeout(self.ttl.mul_f64(RENEW), self.register(&node)).await {
                Ok(Ok(false)) => return self.make_way(),
                Ok(Ok(true)) => {
                    let membership = &self.registry.membership;
                    *membership.node.write() = node;
                    membership.displaced.store(false, Ordering::Release);
                    membership.returned.store(true, Ordering::Release);
                    self.confirm(sent);
                    self.registry.doorbell.ring();
                    // What was admitted in between belongs to the one that is gone.
                    self.fence();
                    tracing::warn!("this process has a lease again");
                    return;
                }
                Ok(Err(error)) => tracing::warn!(%error, "no new lease yet"),
                Err(_) => tracing::warn!("no new lease yet: the store does not answer"),
            }
            if self.parts.tasks.token().is_cancelled() {
                return;
            }
            tokio::time::sleep(LOOK_SHARED).await;
        }
    }

    /// `false` when another process has the store.
    async fn register(&self, node: &NodeId) -> Result<bool, StoreError> {
        if self.parts.nodes.hold().await? == Hold::Lost {
            return Ok(false);
        }
        self.parts.nodes.register(node, self.ttl).await.map(|_| true)
    }

    /// Does what others wrote down for this process, lets go of what is not its own any more, and gives back what it owns without
    /// knowing; not for a ring, which may come between a claim and its handle.
    async fn look(&mut self, rang: bool) {
        // However often it rings, everything is looked at in time.
        let rang = rang && self.looked.elapsed() < LOOK_ALONE;
        if !rang {
            self.looked = Instant::now();
        }
        // Before the store is asked: what begins meanwhile may be missing in its answer.
        let executed = self.registry.live.executed();
        let owned = match self.parts.nodes.owned(&self.registry.membership.node()).await {
            Ok(owned) => owned,
            Err(error) => return tracing::warn!(%error, "the runs of this process cannot be read"),
        };
        let own: HashSet<_> = owned.iter().map(|run| &run.run_id).collect();
        // One that has just ended here looks the same, and heeds nothing any more.
        executed.iter().filter(|(run_id, _)| !own.contains(run_id)).for_each(|(_, live)| live.stop(Stop::Fence));
        let mut strays = HashSet::new();
        for run in owned {
            // A handle that waits is of a run whose claim was never heard of.
            match (self.registry.live(&run.run_id).filter(|live| !live.is_waiting()), run.cancel) {
                (Some(live), Some(action)) => live.stop(Stop::Cancel(action)),
                (Some(_), None) => {}
                (None, _) if rang => {}
                // One that just ended looks the same, once.
                (None, _) if !self.strays.contains(&run.run_id) => drop(strays.insert(run.run_id)),
                (None, _) => self.give_back(run).await,
            }
        }
        if !rang {
            self.strays = strays;
        }
    }

    /// A claim whose answer was lost: somebody has to work on the run.
    async fn give_back(&self, run: OwnedRun) {
        if run.cancel.is_some() {
            return self.end(&run.run_id, run.attempt).await;
        }
        let commit = RunCommit::new(run.run_id.clone(), run.thread_id, run.attempt, self.parts.clock.now()).giving_back();
        match self.parts.commit.commit(commit).await {
            Ok(()) => {
                tracing::warn!(run_id = %run.run_id, "gave back a run that was taken and never begun");
                self.parts.bell.ring(Ring::Waiting);
                self.registry.doorbell.ring();
            }
            Err(CommitError::Store(error)) => tracing::warn!(run_id = %run.run_id, %error, "a run cannot be given back yet"),
            Err(_) => {}
        }
    }

    /// Ends a run that was told to stop and on which nobody works.
    async fn end(&self, run_id: &RunId, attempt: u32) {
        match self.parts.query.get(run_id, &Owner::None).await {
            Ok(Some(run)) if run.attempt == attempt && !run.status.is_terminal() => {
                end_unexecuted(&run, &self.registry, &self.parts).await;
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%run_id, %error, "a run that was told to stop cannot be read"),
        }
    }

    async fn leave(&self) {
        if let Err(error) = self.parts.nodes.leave(&self.registry.membership.node()).await {
            tracing::warn!(%error, "the lease of this process lapses by itself");
        }
    }
}

#[cfg(test)]
#[path = "membership_tests.rs"]
mod tests;
