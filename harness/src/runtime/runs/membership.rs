//! This process among others that work on the same store: its lease, the runs it owns, and what it loses with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::time::Instant;

use super::live::Stop;
use super::parts::RuntimeParts;
use super::queue::end_unexecuted;
use super::registry::RunRegistry;
use super::store::{CommitError, Lease, OwnedRun, RunCommit, StoreError};
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
/// How often while the process ends.
const LOOK_LAST: Duration = Duration::from_millis(20);

/// Under which id this process owns runs.
#[derive(Debug)]
pub(super) struct Membership {
    node: RwLock<NodeId>,
    shared: AtomicBool,
    /// Until when its lease is sure to be valid, once that is known.
    sure_until: RwLock<Option<Instant>>,
}

impl Membership {
    pub(super) fn new(node: NodeId) -> Self {
        Self { node: RwLock::new(node), shared: AtomicBool::new(false), sure_until: RwLock::default() }
    }

    pub(super) fn node(&self) -> NodeId {
        self.node.read().clone()
    }

    /// Whether runs that are taken under this id are this process's to begin: a pause may have cost it its lease, and it need not
    /// have noticed yet.
    pub(super) fn holds(&self, node: &NodeId) -> bool {
        *self.node.read() == *node && self.sure_until.read().is_none_or(|until| Instant::now() < until)
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
    registry.membership.shared.store(shared, Ordering::Release);
    let mut keeper = Keeper { registry: registry.clone(), parts: parts.clone(), ttl, shared, sent, strays: HashSet::new() };
    parts.tasks.spawn(TaskKind::Service, "membership", async move { keeper.keep().await });
    Ok(())
}

struct Keeper {
    registry: Arc<RunRegistry>,
    parts: RuntimeParts,
    ttl: Duration,
    shared: bool,
    /// When the last renewal that was confirmed was sent.
    sent: Instant,
    /// Runs that this process owned without working on them when it last looked.
    strays: HashSet<RunId>,
}

impl Keeper {
    async fn keep(&mut self) {
        let stop = self.parts.tasks.token().clone();
        let look = if self.shared { LOOK_SHARED } else { LOOK_ALONE };
        loop {
            if stop.is_cancelled() && self.registry.live.executed().is_empty() {
                return self.leave().await;
            }
            // While the process ends, its last run is not waited for longer than it takes.
            let pause = if stop.is_cancelled() { LOOK_LAST } else { look };
            tokio::select! {
                biased;
                () = stop.cancelled(), if !stop.is_cancelled() => continue,
                () = tokio::time::sleep(pause) => {}
            }
            if !self.shared {
                self.look().await;
                continue;
            }
            let deadline = self.sent + self.ttl.mul_f64(1.0 - MARGIN);
            *self.registry.membership.sure_until.write() = Some(deadline);
            if tokio::time::timeout_at(deadline, self.renew_and_look()).await.is_err() {
                tracing::error!("the lease of this process is about to lapse: its runs are given up for others to take");
                self.fence();
                self.enter_anew().await;
            }
        }
    }

    async fn renew_and_look(&mut self) {
        if self.sent.elapsed() >= self.ttl.mul_f64(RENEW) {
            let sent = Instant::now();
            match self.parts.nodes.renew(&self.registry.membership.node(), self.ttl).await {
                Ok(true) => self.sent = sent,
                Ok(false) => {
                    tracing::error!("the lease of this process lapsed: others have taken its runs");
                    self.fence();
                    return self.enter_anew().await;
                }
                Err(error) => tracing::warn!(%error, "the lease of this process is not renewed yet"),
            }
        }
        self.look().await;
    }

    /// Stops everything that is executed here, without another word to the store.
    fn fence(&self) {
        self.registry.live.executed().iter().for_each(|live| live.stop(Stop::Fence));
    }

    /// A lease that lapsed is never revived: the process comes back as another one.
    async fn enter_anew(&mut self) {
        let node = self.parts.ids.node_id();
        loop {
            let sent = Instant::now();
            match tokio::time::timeout(self.ttl.mul_f64(RENEW), self.parts.nodes.register(&node, self.ttl)).await {
                Ok(Ok(_)) => {
                    *self.registry.membership.node.write() = node;
                    self.sent = sent;
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

    /// Does what others wrote down for this process, and gives back what it owns without knowing.
    async fn look(&mut self) {
        let owned = match self.parts.nodes.owned(&self.registry.membership.node()).await {
            Ok(owned) => owned,
            Err(error) => return tracing::warn!(%error, "the runs of this process cannot be read"),
        };
        let mut strays = HashSet::new();
        for run in owned {
            // A handle that waits is of a run whose claim was never heard of.
            match (self.registry.live(&run.run_id).filter(|live| !live.is_waiting()), run.cancel) {
                (Some(live), Some(action)) => live.stop(Stop::Cancel(action)),
                (Some(_), None) => {}
                // One that just ended looks the same, once.
                (None, _) if !self.strays.contains(&run.run_id) => drop(strays.insert(run.run_id)),
                (None, _) => self.give_back(run).await,
            }
        }
        self.strays = strays;
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
