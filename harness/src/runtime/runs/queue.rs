//! Runs that wait, and those whose process died: the store keeps them and says whose turn it is; this starts them, or ends
//! those that never go on.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::closing::Closing;
use super::error::RunError;
use super::live::{RunOutcome, Stop};
use super::parts::{RunLimits, RuntimeParts};
use super::planner::plan;
use super::record::{LOST_ERROR, RunRecord, ThreadStatus};
use super::recovery::{self, Fate, ORPHAN_RECOVERED, ROLLED_BACK, fate};
use super::registry::{RunRegistry, RunTicket};
use super::spec::{CancelAction, IfNotExists, RunScope};
use super::status::RunStatus;
use super::store::{Claimed, RunCommit, RunEnd, StoreError};
use super::supervisor::launch;
use crate::ids::NodeId;
use crate::runtime::actor_context::{self, Owner};
use crate::runtime::fail_points;
use crate::runtime::tasks::{TaskKind, panic_text};

/// The longest that a turn goes unnoticed for which no bell was heard, and a run whose process died where others may be.
const LOOK: Duration = Duration::from_secs(2);
/// The same while this process comes back under a new id.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How often runs are looked for whose end or turn nobody came to: told to stop while they waited, by a process that died then, or
/// left where no other process is known.
const SWEEP: Duration = Duration::from_secs(30);
/// The longest that starting one run may keep the others waiting.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Goes on with the runs whose processes are gone. At a start with the store for itself, these are all that somebody owned.
/// Gives their number.
pub(super) async fn take_over(
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) -> Result<usize, RunError> {
    let queue = Queue {
        registry: registry.clone(),
        parts: parts.clone(),
    };
    queue
        .try_take_over_all()
        .await
        .map(|over| over.taken)
        .map_err(Into::into)
}

/// What a take-over came to.
struct TakenOver {
    taken: usize,
    /// Whether nothing more was left.
    all: bool,
}

/// Wakes the queue when somebody's turn may have come.
#[derive(Debug, Default)]
pub(super) struct Doorbell {
    rings: Notify,
    answered: AtomicBool,
}

impl Doorbell {
    /// Has the queue look at once.
    pub(super) fn ring(&self) {
        self.rings.notify_one();
    }
}

/// Begins to start what waits, unless that was begun before. It goes on as long as the process lives.
pub(super) fn open(registry: &Arc<RunRegistry>, parts: &RuntimeParts) {
    if registry.doorbell.answered.swap(true, Ordering::AcqRel) {
        return registry.doorbell.ring();
    }
    let queue = Queue {
        registry: registry.clone(),
        parts: parts.clone(),
    };
    let (mut looked, mut swept) = (Instant::now(), Instant::now());
    parts
        .tasks
        .spawn(TaskKind::Service, "run queue", async move {
            let stop = queue.parts.tasks.token().clone();
            // What was claimed is started: looking is not given up half way.
            while !stop.is_cancelled() {
                let pause = queue.start_all().await;
                let every = if queue.registry.membership.may_find_left() {
                    LOOK
                } else {
                    SWEEP
                };
                if looked.elapsed() >= every {
                    looked = Instant::now();
                    queue.take_over_all().await;
                    queue.follow_elsewhere().await;
                }
                if swept.elapsed() >= SWEEP {
                    swept = Instant::now();
                    if let Err(error) =
                        recovery::end_told_to_stop(&queue.registry, &queue.parts).await
                    {
                        tracing::warn!(%error, "runs that wait cannot be looked through");
                    }
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = queue.registry.doorbell.rings.notified() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
}

struct Queue {
    registry: Arc<RunRegistry>,
    parts: RuntimeParts,
}

impl Queue {
    /// Starts every run whose turn has come, and says how long to rest.
    async fn start_all(&self) -> Duration {
        match self.try_start_all().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(%error, "runs that wait cannot be started yet");
                LOOK
            }
        }
    }

    async fn try_start_all(&self) -> Result<Duration, StoreError> {
        loop {
            if self.is_idle() {
                // What waits is for the next process.
                return Ok(LOOK);
            }
            let now = self.parts.clock.now();
            let node = self.registry.membership.node();
            if !self.registry.membership.holds(&node) {
                return Ok(LOOK_AGAIN);
            }
            let Some(claimed) = self.parts.create.claim(&node, now).await? else {
                let due = self.parts.create.next_due(now).await?;
                return Ok(due
                    .and_then(|due| (due - now).to_std().ok())
                    .map_or(LOOK, |wait| wait.min(LOOK)));
            };
            fail_points::pass("queue.claimed");
            self.begin(claimed, &node).await;
        }
    }

    /// Whether nothing is to be begun: the process ends, or another one has the store.
    fn is_idle(&self) -> bool {
        self.parts.tasks.token().is_cancelled() || self.registry.membership.is_displaced()
    }

    async fn take_over_all(&self) {
        let returns = self.registry.membership.returns();
        match self.try_take_over_all().await {
            Ok(TakenOver { taken, all }) => {
                if all {
                    self.registry.membership.has_searched(returns);
                }
                if taken > 0 {
                    tracing::warn!(runs = taken, "took over runs whose process is gone");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "runs whose process is gone cannot be taken over yet")
            }
        }
    }

    async fn try_take_over_all(&self) -> Result<TakenOver, StoreError> {
        let mut taken = 0;
        while !self.is_idle() {
            let node = self.registry.membership.node();
            if !self.registry.membership.holds(&node) {
                break;
            }
            let next = self
                .parts
                .create
                .take_over(&node, self.parts.clock.now())
                .await?;
            let Some(claimed) = next else {
                return Ok(TakenOver { taken, all: true });
            };
            fail_points::pass("queue.taken-over");
            self.begin(claimed, &node).await;
            taken += 1;
        }
        Ok(TakenOver { taken, all: false })
    }

    /// Starts a run that was taken under the id `node`. One that cannot be started must not keep all others waiting.
    async fn begin(&self, claimed: Claimed, node: &NodeId) {
        if !self.registry.membership.holds(node) {
            // Its owner does not live, so it is taken again.
            return tracing::warn!(run_id = %claimed.run.run_id, "a run was taken under a lease that has lapsed since");
        }
        let run = claimed.run.clone();
        let work = AssertUnwindSafe(start(claimed, &self.registry, &self.parts));
        let failed = match tokio::time::timeout(START_LIMIT, work.catch_unwind()).await {
            Ok(Ok(())) => None,
            Ok(Err(panic)) => Some(panic_text(panic.as_ref())),
            Err(_) => Some("its agent was not assembled in time".to_owned()),
        };
        if let Some(why) = failed {
            give_up(&run, ORPHAN_RECOVERED, &why, &self.registry, &self.parts).await;
        }
    }

    /// Lets go of runs that waited here and that another process has taken.
    async fn follow_elsewhere(&self) {
        let waiting = self.registry.live.waiting();
        if waiting.is_empty() {
            return;
        }
        let standing = match self.parts.query.standing(None, &Owner::None).await {
            Ok(standing) => standing,
            Err(error) => {
                return tracing::warn!(%error, "what became of the runs that wait cannot be read");
            }
        };
        let still: HashSet<_> = standing
            .iter()
            .filter(|run| run.status == RunStatus::Pending)
            .map(|run| &run.run_id)
            .collect();
        for (run_id, live) in waiting.iter().filter(|(run_id, _)| !still.contains(run_id)) {
            self.registry.live.remove_exactly(run_id, live);
            live.left();
        }
    }
}

/// Starts a run whose turn has come, from what was written down of it, or ends it if it lost too much.
async fn start(claimed: Claimed, registry: &Arc<RunRegistry>, parts: &RuntimeParts) {
    let Claimed {
        run,
        losses,
        worked,
        recipe,
    } = claimed;
    // The limit is the run's, whoever works on it.
    let limits = *registry.limits.read();
    let limits = RunLimits {
        wall_clock: limits.wall_clock.saturating_sub(worked),
        ..limits
    };
    let live = registry.live.for_attempt(&run.run_id);
    live.set_status(RunStatus::Starting);
    // A cancel that came between the claim and the handle found nobody to tell.
    match parts.query.get(&run.run_id, &Owner::None).await {
        Ok(now) => {
            if let Some(action) = now.and_then(|now| now.cancel) {
                live.stop(Stop::Cancel(action));
            }
        }
        Err(error) => {
            tracing::warn!(run_id = %run.run_id, %error, "whether a run was told to stop cannot be read")
        }
    }
    let recipe = match recipe {
        Ok(recipe) => recipe,
        Err(reason) => {
            return give_up(
                &run,
                ORPHAN_RECOVERED,
                &format!("the run cannot be read: {reason}"),
                registry,
                parts,
            )
            .await;
        }
    };
    if let Fate::End(reason, why) =
        fate(&run, &recipe.spec, losses, worked > Duration::ZERO, &limits)
    {
        return give_up(&run, reason, why, registry, parts).await;
    }
    let mut spec = recipe.spec;
    spec.run_id = Some(run.run_id.clone());
    spec.scope = RunScope::Stateful {
        thread_id: run.thread_id.clone(),
        if_not_exists: IfNotExists::Reject,
    };
    spec.metadata.clone_from(&run.metadata);
    spec.kwargs.clone_from(&run.kwargs);
    let resolved = parts.agents.resolve(&spec.assistant, &spec.config.options);
    match actor_context::scope(recipe.actor.clone(), resolved).await {
        Ok(agent) => {
            let plan = plan(spec, agent, recipe.actor, &limits, &*parts.ids);
            launch(RunTicket { record: run, live }, plan, registry, parts);
            fail_points::pass("queue.launched");
        }
        Err(error) => give_up(&run, ORPHAN_RECOVERED, &error.to_string(), registry, parts).await,
    }
}

/// Ends a run whose turn has come and that cannot be started.
async fn give_up(
    run: &RunRecord,
    reason: &'static str,
    why: &str,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) {
    let Some(closing) = Closing::begin(run, registry) else {
        return;
    };
    tracing::error!(run_id = %run.run_id, reason = why, "a run cannot be started");
    let ending = recovery::end_orphan(run, reason, why, parts).await;
    let (status, error) = match run.cancel {
        Some(CancelAction::Interrupt) => (RunStatus::Interrupted, None),
        // It was asked for, so it is no failure to those who view the run.
        Some(CancelAction::Rollback) => (RunStatus::Error, None),
        None => (
            RunStatus::Error,
            Some((LOST_ERROR.to_owned(), why.to_owned())),
        ),
    };
    closing.close(
        ending,
        RunOutcome {
            status,
            error,
            values: None,
        },
        parts,
    );
}

/// Ends a run that was told to stop, and that nobody executes although it was at work or taken before.
pub(super) async fn end_unexecuted(
    run: &RunRecord,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) {
    give_up(run, ORPHAN_RECOVERED, recovery::LOST, registry, parts).await;
}

/// Ends a run that waits and was told to stop. Who waits for it is told; unless it was at work before, it leaves nothing in its
/// thread.
pub(super) async fn end_unstarted(
    run: &RunRecord,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) {
    if run.was_given_back() {
        return end_unexecuted(run, registry, parts).await;
    }
    let Some(closing) = Closing::begin(run, registry) else {
        return;
    };
    let rolled_back = run.cancel == Some(CancelAction::Rollback);
    let status = RunStatus::Interrupted;
    let commit = RunCommit {
        end: Some(RunEnd {
            status,
            error: None,
            error_name: None,
            stop_reason: rolled_back.then(|| ROLLED_BACK.to_owned()),
            completion: run.completion.clone(),
            thread_status: ThreadStatus::Idle,
            title: None,
            webhook: recovery::webhook_of(run, None),
            kept_values: None,
            // It has none: the thread is left as its newest one says.
            discard_checkpoints: true,
            forget_calls: false,
        }),
        ..RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            parts.clock.now(),
        )
    };
    let ending = recovery::store_end(commit, parts).await;
    closing.close(
        ending,
        RunOutcome {
            status,
            error: None,
            values: None,
        },
        parts,
    );
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
