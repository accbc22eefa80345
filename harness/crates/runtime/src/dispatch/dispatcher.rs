//! Starts queued runs and takes over orphaned ones. The store holds the queue and decides the
//! order.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::supervisor::launch;
use crate::admission::{RunTicket, pins, plan};
use crate::definition::{IfNotExists, RunLimits, RunScope, RunStatus, StopReason, StoreError};
use crate::failover::{TakeoverDecision, decide_takeover, recovery};
use crate::kernel::{RunError, Runtime, StopSignal};
use crate::ports::Claimed;
use crate::termination::end_unstartable;
use deerflow_core::actor_context::{self, Owner};
use deerflow_core::fail_points;
use deerflow_core::ids::NodeId;
use deerflow_core::tasks::{TaskKind, panic_text};

/// Maximum delay until a queued run is started without a wake-up signal. Also the interval of
/// takeovers in a shared store.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Poll interval while this process registers under a new id.
const REJOIN_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Interval at which the dispatcher ends cancelled queued runs that the cancelling process could
/// not end. Also the interval of takeovers in an exclusive store.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum time to start one run. Runs are started one after the other.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes over all orphaned runs and returns their number. In an exclusive store, every owned run is
/// orphaned at startup.
pub(crate) async fn take_over(runtime: &Arc<Runtime>) -> Result<usize, RunError> {
    let dispatcher = Dispatcher {
        runtime: runtime.clone(),
    };
    dispatcher
        .try_take_over_all()
        .await
        .map(|result| result.taken)
        .map_err(Into::into)
}

/// Result of a takeover round.
struct TakeoverResult {
    taken: usize,
    /// `true` if no orphaned run remains.
    complete: bool,
}

/// Starts the dispatcher task if it is not running, and wakes it otherwise. The task runs until
/// shutdown.
pub(crate) fn start(runtime: &Arc<Runtime>) {
    if runtime
        .registry
        .dispatch_wake
        .started
        .swap(true, Ordering::AcqRel)
    {
        return runtime.registry.dispatch_wake.wake();
    }
    let dispatcher = Dispatcher {
        runtime: runtime.clone(),
    };
    let (mut polled_at, mut swept_at) = (Instant::now(), Instant::now());
    runtime
        .ports
        .tasks
        .spawn(TaskKind::Service, "dispatcher", async move {
            let stop = dispatcher.runtime.ports.tasks.token().clone();
            // A round is never cancelled, because a claimed run has to be started.
            while !stop.is_cancelled() {
                let pause = dispatcher.start_all().await;
                let every = if dispatcher.runtime.registry.node_lease.may_have_orphans() {
                    POLL_INTERVAL
                } else {
                    SWEEP_INTERVAL
                };
                if polled_at.elapsed() >= every {
                    polled_at = Instant::now();
                    dispatcher.take_over_all().await;
                    dispatcher.detach_taken_elsewhere().await;
                }
                if swept_at.elapsed() >= SWEEP_INTERVAL {
                    swept_at = Instant::now();
                    if let Err(error) = recovery::end_cancelled_queued(&dispatcher.runtime).await {
                        tracing::warn!(%error, "cannot end cancelled queued runs yet");
                    }
                }
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = dispatcher.runtime.registry.dispatch_wake.signal.notified() => {}
                    () = tokio::time::sleep(pause) => {}
                }
            }
        });
}

struct Dispatcher {
    runtime: Arc<Runtime>,
}

impl Dispatcher {
    /// Starts every run that is ready. Returns the pause until the next round.
    async fn start_all(&self) -> Duration {
        match self.try_start_all().await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::warn!(%error, "cannot start queued runs yet");
                POLL_INTERVAL
            }
        }
    }

    async fn try_start_all(&self) -> Result<Duration, StoreError> {
        loop {
            if self.is_idle() {
                // The next process starts the queued runs.
                return Ok(POLL_INTERVAL);
            }
            let now = self.runtime.ports.clock.now();
            let node = self.runtime.registry.node_lease.node();
            if !self.runtime.registry.node_lease.holds(&node) {
                return Ok(REJOIN_POLL_INTERVAL);
            }
            let limits = self.runtime.registry.limits.read().per_user;
            let claimed = self.runtime.ports.create.claim(&node, now, limits).await?;
            let Some(claimed) = claimed else {
                let next_start = self.runtime.ports.create.next_due(now).await?;
                return Ok(next_start
                    .and_then(|next_start| (next_start - now).to_std().ok())
                    .map_or(POLL_INTERVAL, |wait| wait.min(POLL_INTERVAL)));
            };
            fail_points::pass("queue.claimed");
            self.start_guarded(claimed, &node).await;
        }
    }

    /// Reports whether no run may be started: this process shuts down, or another process holds the
    /// store lock.
    fn is_idle(&self) -> bool {
        self.runtime.ports.tasks.token().is_cancelled()
            || self.runtime.registry.node_lease.is_displaced()
    }

    async fn take_over_all(&self) {
        let rejoin_count = self.runtime.registry.node_lease.rejoin_count();
        match self.try_take_over_all().await {
            Ok(TakeoverResult { taken, complete }) => {
                if complete {
                    self.runtime.registry.node_lease.mark_searched(rejoin_count);
                }
                if taken > 0 {
                    tracing::warn!(runs = taken, "took over orphaned runs");
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot take over orphaned runs yet")
            }
        }
    }

    async fn try_take_over_all(&self) -> Result<TakeoverResult, StoreError> {
        let mut taken = 0;
        while !self.is_idle() {
            let node = self.runtime.registry.node_lease.node();
            if !self.runtime.registry.node_lease.holds(&node) {
                break;
            }
            let next = self
                .runtime
                .ports
                .create
                .take_over(&node, self.runtime.ports.clock.now())
                .await?;
            let Some(claimed) = next else {
                return Ok(TakeoverResult {
                    taken,
                    complete: true,
                });
            };
            fail_points::pass("queue.taken-over");
            self.start_guarded(claimed, &node).await;
            taken += 1;
        }
        Ok(TakeoverResult {
            taken,
            complete: false,
        })
    }

    /// Starts a run that was claimed under the node id `node`. A run that cannot be started is
    /// ended, so that it does not block the queue.
    async fn start_guarded(&self, claimed: Claimed, node: &NodeId) {
        if !self.runtime.registry.node_lease.holds(node) {
            // The node id that owns the run is no longer registered, so the run is taken over
            // again.
            return tracing::warn!(
                run_id = %claimed.run.run_id,
                "claimed a run under a lease that has expired since"
            );
        }
        let run = claimed.run.clone();
        let work = AssertUnwindSafe(start_claimed(claimed, &self.runtime));
        let failed = match tokio::time::timeout(START_TIMEOUT, work.catch_unwind()).await {
            Ok(Ok(())) => None,
            Ok(Err(panic)) => Some(panic_text(panic.as_ref())),
            Err(_) => Some("assembling the agent timed out".to_owned()),
        };
        if let Some(why) = failed {
            end_unstartable(&run, StopReason::OrphanRecovered, &why, &self.runtime).await;
        }
    }

    /// Detaches the handles of runs that were queued here and that another process has taken.
    async fn detach_taken_elsewhere(&self) {
        let waiting = self.runtime.registry.active.waiting();
        if waiting.is_empty() {
            return;
        }
        let unfinished = match self.runtime.ports.query.standing(None, &Owner::None).await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                return tracing::warn!(%error, "cannot read the state of queued runs");
            }
        };
        let still_queued: HashSet<_> = unfinished
            .iter()
            .filter(|run| run.status == RunStatus::Pending)
            .map(|run| &run.run_id)
            .collect();
        for (run_id, active) in waiting
            .iter()
            .filter(|(run_id, _)| !still_queued.contains(run_id))
        {
            self.runtime.registry.active.remove_exactly(run_id, active);
            active.detached();
        }
    }
}

/// Starts a claimed run from its stored request, or ends it if it may not be resumed.
async fn start_claimed(claimed: Claimed, runtime: &Arc<Runtime>) {
    let Claimed {
        run,
        losses,
        worked,
        recipe,
    } = claimed;
    // The wall clock limit covers all attempts of a run.
    let limits = *runtime.registry.limits.read();
    let limits = RunLimits {
        wall_clock: limits.wall_clock.saturating_sub(worked),
        ..limits
    };
    let active = runtime.registry.active.for_attempt(&run.run_id);
    active.set_status(RunStatus::Starting);
    // A cancel between the claim and the creation of the handle could not be signalled.
    match runtime.ports.query.get(&run.run_id, &Owner::None).await {
        Ok(now) => {
            if let Some(action) = now.and_then(|now| now.cancel) {
                active.stop(StopSignal::Cancel(action));
            }
        }
        Err(error) => {
            tracing::warn!(run_id = %run.run_id, %error, "cannot read whether a run was cancelled")
        }
    }
    let recipe = match recipe {
        Ok(recipe) => recipe,
        Err(reason) => {
            return end_unstartable(
                &run,
                StopReason::OrphanRecovered,
                &format!("cannot read the stored request of the run: {reason}"),
                runtime,
            )
            .await;
        }
    };
    let (began, is_stalled) = (
        worked > Duration::ZERO,
        runtime.registry.polled.is_stalled(&run.run_id),
    );
    let decision = decide_takeover(&run, &recipe.spec, losses, began, is_stalled, &limits);
    if let TakeoverDecision::End(reason, why) = decision {
        return end_unstartable(&run, reason, why, runtime).await;
    }
    let mut request = recipe.spec;
    request.run_id = Some(run.run_id.clone());
    request.scope = RunScope::Stateful {
        thread_id: run.thread_id.clone(),
        if_not_exists: IfNotExists::Reject,
    };
    request.metadata.clone_from(&run.metadata);
    request.presentation.request_echo = run.kwargs.clone();
    let pin = pins::at_start(recipe.pin, &request, &runtime.ports).await;
    let resolved = runtime.ports.agents.resolve_pinned(
        &request.assistant,
        &request.config.options,
        pin.as_ref(),
    );
    match actor_context::scope(recipe.actor.clone(), resolved).await {
        Ok(agent) => {
            let plan =
                plan(request, agent, recipe.actor, &limits, &*runtime.ports.ids).with_pin(pin);
            let ticket = RunTicket {
                record: run,
                active,
                head: None,
            };
            let (_, work) = launch(ticket, plan, runtime);
            runtime.ports.tasks.spawn(TaskKind::Run, "run", work);
            fail_points::pass("queue.launched");
        }
        Err(error) => {
            end_unstartable(
                &run,
                StopReason::OrphanRecovered,
                &error.to_string(),
                runtime,
            )
            .await
        }
    }
}

#[cfg(test)]
#[path = "dispatcher_tests.rs"]
mod tests;
