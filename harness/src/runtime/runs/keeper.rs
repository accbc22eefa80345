//! Keeps this process entered among others, does what they wrote down for it, and stops its runs before its lease lapses.

use std::collections::HashSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::bell::Ring;
use super::live::Stop;
use super::parts::RuntimeParts;
use super::queue::end_unexecuted;
use super::registry::RunRegistry;
use super::settling::Settling;
use super::store::{CommitError, Hold, OwnedRun, RunCommit};
use crate::ids::RunId;
use crate::runtime::actor_context::Owner;
use crate::runtime::tasks::TaskKind;

/// The part of its lease after which a process says that it lives, and for which it waits for an answer.
const RENEW: f64 = 0.3;
/// How often it looks what became of its runs, with others and alone: cancels asked for elsewhere are seen by then.
const LOOK_SHARED: Duration = Duration::from_millis(500);
const LOOK_ALONE: Duration = Duration::from_secs(10);
/// How often it asks whether others that must not be there are still kept out, and how long it waits for the answer.
const HOLD: Duration = Duration::from_secs(2);
const HOLD_LIMIT: Duration = Duration::from_secs(8);
/// How often while the process ends.
const LOOK_LAST: Duration = Duration::from_millis(20);

/// What comes before everything else, again and again until it succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owing {
    Nothing,
    /// Whether the lease still stands is to be asked.
    Renewal,
    /// The lease is lost, or another process has the store: nothing is executed here.
    Entry,
}

/// The lease may lapse before it is renewed.
#[derive(Debug)]
struct Lapsing;

pub(super) struct Keeper {
    registry: Arc<RunRegistry>,
    parts: RuntimeParts,
    ttl: Duration,
    owing: Owing,
    /// When it last asked whether others are kept out, and when it last looked what became of its runs.
    held: Instant,
    looked: Instant,
    /// Runs that this process owned without working on them when it last looked.
    strays: HashSet<RunId>,
}

impl Keeper {
    pub(super) fn new(registry: Arc<RunRegistry>, parts: RuntimeParts, ttl: Duration) -> Self {
        let now = Instant::now();
        Self {
            registry,
            parts,
            ttl,
            owing: Owing::Nothing,
            held: now,
            looked: now,
            strays: HashSet::new(),
        }
    }

    pub(super) async fn keep(&mut self) {
        let stop = self.parts.tasks.token().clone();
        let shared = self.registry.membership.is_shared();
        loop {
            if stop.is_cancelled() && self.registry.live.executed().is_empty() {
                return self.leave().await;
            }
            let pause = match (stop.is_cancelled(), shared) {
                // While the process ends, its last run is not waited for longer than it takes.
                (true, _) => LOOK_LAST,
                (false, true) => LOOK_SHARED,
                (false, false) => HOLD,
            };
            let rang = tokio::select! {
                biased;
                () = stop.cancelled(), if !stop.is_cancelled() => continue,
                () = self.registry.look.notified() => true,
                () = sleep(pause) => false,
            };
            if self.owing == Owing::Entry {
                self.enter().await;
                continue;
            }
            let registry = self.registry.clone();
            if within_lease(&registry, self.tend(rang)).await.is_err() {
                tracing::error!(
                    "the lease of this process is about to lapse: its runs are given up for others to take"
                );
                self.give_up_lease().await;
            }
        }
    }

    async fn tend(&mut self, rang: bool) {
        if self.held.elapsed() >= HOLD {
            self.hold().await;
        }
        let aged = self
            .registry
            .membership
            .lease()
            .is_some_and(|lease| lease.age >= self.patience());
        if self.owing == Owing::Renewal || (aged && self.owing == Owing::Nothing) {
            self.renew().await;
        }
        let due =
            rang || self.registry.membership.is_shared() || self.looked.elapsed() >= LOOK_ALONE;
        if due && self.owing != Owing::Entry {
            self.look(rang).await;
        }
    }

    /// How long an answer of the store is waited for: with two of them late, there is time to renew the lease yet.
    fn patience(&self) -> Duration {
        self.ttl.mul_f64(RENEW)
    }

    /// Sees to it that others are kept out that must not be there. Where that broke, one of them may have come. Whether the place
    /// is known to be this process's.
    async fn hold(&mut self) -> bool {
        self.held = Instant::now();
        let limit = if self.registry.membership.is_shared() {
            HOLD_LIMIT.min(self.patience())
        } else {
            HOLD_LIMIT
        };
        match timeout(limit, self.parts.nodes.hold()).await {
            Ok(Ok(Hold::Lost)) => self.make_way(),
            Ok(Ok(Hold::Retaken)) if self.owing != Owing::Entry => {
                tracing::warn!(
                    "the session that keeps this process's place in its store broke, and is there again"
                );
                self.owing = Owing::Renewal;
                return true;
            }
            Ok(Ok(Hold::Kept | Hold::Retaken)) => return true,
            Ok(Err(error)) => {
                tracing::warn!(%error, "whether this process still has its store cannot be found out")
            }
            Err(_) => tracing::warn!(
                "whether this process still has its store cannot be found out: the store does not answer"
            ),
        }
        false
    }

    /// Nothing is begun or gone on with here while another process has the store.
    fn make_way(&mut self) {
        if self.registry.membership.displace() {
            tracing::error!(
                "another process has taken the store of this one, which it must not share with it: runs here are given up and none is \
                 admitted until that process ends"
            );
        }
        self.owing = Owing::Entry;
        self.fence();
    }

    async fn renew(&mut self) {
        let sent = Instant::now();
        let node = self.registry.membership.node();
        match timeout(self.patience(), self.parts.nodes.renew(&node, self.ttl)).await {
            Ok(Ok(true)) => {
                self.registry.membership.confirm(sent, self.ttl);
                self.owing = Owing::Nothing;
            }
            Ok(Ok(false)) => {
                tracing::error!("the lease of this process lapsed: others have taken its runs");
                self.give_up_lease().await;
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease of this process is not renewed yet")
            }
            Err(_) => tracing::warn!(
                "the lease of this process is not renewed yet: the store does not answer"
            ),
        }
    }

    async fn give_up_lease(&mut self) {
        self.owing = Owing::Entry;
        self.fence();
        self.enter().await;
    }

    /// Stops everything that is executed here, without another word to the store.
    fn fence(&self) {
        self.registry
            .live
            .executed()
            .iter()
            .for_each(|(_, live)| live.stop(Stop::Fence));
    }

    /// A lease that lapsed is never revived: the process comes back as another one.
    async fn enter(&mut self) {
        if !self.hold().await {
            return;
        }
        let (node, sent) = (self.parts.ids.node_id(), Instant::now());
        match timeout(self.patience(), self.parts.nodes.register(&node, self.ttl)).await {
            Ok(Ok(_)) => {
                self.registry.membership.come_back(node, sent, self.ttl);
                self.owing = Owing::Nothing;
                self.registry.doorbell.ring();
                // What was admitted in between belongs to the one that is gone.
                self.fence();
                tracing::warn!("this process has a lease again");
            }
            Ok(Err(error)) => tracing::warn!(%error, "no new lease yet"),
            Err(_) => tracing::warn!("no new lease yet: the store does not answer"),
        }
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
        let owned = match timeout(
            self.patience(),
            self.parts.nodes.owned(&self.registry.membership.node()),
        )
        .await
        {
            Ok(Ok(owned)) => owned,
            Ok(Err(error)) => {
                return tracing::warn!(%error, "the runs of this process cannot be read");
            }
            Err(_) => {
                return tracing::warn!(
                    "the runs of this process cannot be read: the store does not answer"
                );
            }
        };
        let own: HashSet<_> = owned.iter().map(|run| &run.run_id).collect();
        // One that has just ended here looks the same, and heeds nothing any more.
        executed
            .iter()
            .filter(|(run_id, _)| !own.contains(run_id))
            .for_each(|(_, live)| live.stop(Stop::Fence));
        let mut strays = HashSet::new();
        for run in owned {
            // A handle that waits is of a run whose claim was never heard of.
            match (
                self.registry
                    .live(&run.run_id)
                    .filter(|live| !live.is_waiting()),
                run.cancel,
            ) {
                (Some(live), Some(action)) => live.stop(Stop::Cancel(action)),
                (Some(_), None) => {}
                (None, _) if rang => {}
                // One that just ended looks the same, once.
                (None, _) if !self.strays.contains(&run.run_id) => drop(strays.insert(run.run_id)),
                (None, _) => self.settle(run),
            }
        }
        if !rang {
            self.strays = strays;
        }
    }

    /// Gives back or ends a run on which nobody works, beside everything else: the store may take its time.
    fn settle(&self, run: OwnedRun) {
        let Some(settling) = self.registry.settling.begin(&run.run_id, run.attempt) else {
            return;
        };
        let (registry, parts) = (self.registry.clone(), self.parts.clone());
        self.parts
            .tasks
            .spawn(TaskKind::Service, "stray run", async move {
                if run.cancel.is_some() {
                    return end(&run, settling, &registry, &parts).await;
                }
                give_back(run, &registry, &parts).await;
                drop(settling);
            });
    }

    async fn leave(&self) {
        if let Err(error) = self
            .parts
            .nodes
            .leave(&self.registry.membership.node())
            .await
        {
            tracing::warn!(%error, "the lease of this process lapses by itself");
        }
    }
}

/// Works until it is done, or until the lease is about to lapse that may have been renewed meanwhile.
async fn within_lease<T>(
    registry: &RunRegistry,
    work: impl Future<Output = T>,
) -> Result<T, Lapsing> {
    let mut work = pin!(work);
    while let Some(deadline) = registry.membership.deadline() {
        match timeout_at(deadline, &mut work).await {
            Ok(done) => return Ok(done),
            Err(_) if registry.membership.deadline() == Some(deadline) => return Err(Lapsing),
            Err(_) => {}
        }
    }
    Ok(work.await)
}

/// A claim whose answer was lost: somebody has to work on the run.
async fn give_back(run: OwnedRun, registry: &RunRegistry, parts: &RuntimeParts) {
    let commit = RunCommit::new(
        run.run_id.clone(),
        run.thread_id,
        run.attempt,
        parts.clock.now(),
    )
    .giving_back();
    match parts.commit.commit(commit).await {
        Ok(()) => {
            tracing::warn!(run_id = %run.run_id, "gave back a run that was taken and never begun");
            parts.bell.ring(Ring::Waiting);
            registry.doorbell.ring();
        }
        Err(CommitError::Store(error)) => {
            tracing::warn!(run_id = %run.run_id, %error, "a run cannot be given back yet")
        }
        Err(_) => {}
    }
}

/// Ends a run that was told to stop and on which nobody works.
async fn end(of: &OwnedRun, settling: Settling, registry: &Arc<RunRegistry>, parts: &RuntimeParts) {
    match parts.query.get(&of.run_id, &Owner::None).await {
        Ok(Some(run)) if run.attempt == of.attempt && !run.status.is_terminal() => {
            // Ending it begins that anew.
            drop(settling);
            end_unexecuted(&run, registry, parts).await;
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(run_id = %of.run_id, %error, "a run that was told to stop cannot be read")
        }
    }
}
