//! Admits runs.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::run_plan::RunPlan;
use crate::checkpoint::ThreadHead;
use crate::definition::{CancelAction, RunRecord, RunStatus, StopReason};
use crate::kernel::{ActiveRun, RunError, Runtime};
use crate::ports::{AdmitError, NewRun, RunCommit, RuntimePorts, WakeSignal};
use crate::termination::{LOST_TEXT, end_commit};
use deerflow_core::actor_context::Owner;
use deerflow_core::fail_points;
use deerflow_core::ids::{NodeId, RunId};
use deerflow_core::tasks::TaskKind;

/// Pauses between checks for a run whose admission may have been written although the store failed.
/// Their sum exceeds the duration of a write in flight; short intervals would add load to an
/// overloaded store.
const ACKNOWLEDGE_CHECK_DELAYS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
    Duration::from_secs(20),
    Duration::from_secs(30),
];

/// Proof that a run was started or queued by the store. Admission and the dispatcher create
/// tickets, and launching consumes them.
#[derive(Debug)]
pub(crate) struct RunTicket {
    pub(crate) record: RunRecord,
    pub(crate) active: Arc<ActiveRun>,
    /// Head of the thread at admission, if the store reported it. Only the run changes its thread
    /// until it ends.
    pub(crate) head: Option<ThreadHead>,
}

/// Result of an admission.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The run owns its thread and may be launched.
    Ready(RunTicket),
    /// The run is queued; the dispatcher starts it.
    Queued(RunTicket),
}

impl Runtime {
    /// Admits the plan, and cancels the runs that its strategy displaces. The run is committed when
    /// this returns.
    #[tracing::instrument(name = "admit", skip_all)]
    pub(crate) async fn admit(self: &Arc<Self>, plan: &RunPlan) -> Result<Admission, RunError> {
        // The handle exists before the row is committed, so that a cancel that reads the row can
        // use it.
        let active = ActiveRun::new();
        if !self.registry.active.insert_new(&plan.run_id, &active) {
            // The handle belongs to the existing run.
            return Err(AdmitError::RunExists(plan.run_id.clone()).into());
        }
        let owner = self.registry.node_lease.node();
        let new = new_run(plan, owner.clone(), &self.ports);
        let created_at = new.created_at;
        let mut admitted = match self.ports.create.admit(new).await {
            Ok(admitted) => admitted,
            Err(error) => {
                self.registry.active.remove(&plan.run_id);
                // The run may be admitted, and have a viewer that waits for this handle.
                active.detached();
                // With a request key, a retry returns the run if it was admitted. The lease keeper
                // releases the run, because no task executes it, and the dispatcher starts it.
                if matches!(error, AdmitError::Store(_))
                    && plan.request().idempotency_key().is_none()
                {
                    end_unacknowledged(plan.run_id.clone(), created_at, self);
                }
                return Err(error.into());
            }
        };
        fail_points::pass("run.admitted");
        // Set before the next await: the run may be started at any time.
        if !admitted.run.status.is_owned() {
            self.registry.active.enqueue(&active);
        }
        for run in &admitted.displaced {
            self.stop(run).await;
            fail_points::pass("run.displaced");
        }
        if admitted.run.status.is_owned() && !self.registry.node_lease.holds(&owner) {
            self.release(&mut admitted.run, &active).await;
            return Ok(Admission::Queued(RunTicket {
                record: admitted.run,
                active,
                head: None,
            }));
        }
        let ticket = RunTicket {
            record: admitted.run,
            active,
            head: admitted.head,
        };
        if ticket.record.status.is_owned() {
            return Ok(Admission::Ready(ticket));
        }
        self.ports.bell.ring(WakeSignal::Waiting);
        Ok(Admission::Queued(ticket))
    }

    /// Releases a run that was admitted under an expired lease, so that another process starts it.
    async fn release(&self, run: &mut RunRecord, active: &ActiveRun) {
        let commit = RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            self.ports.clock.now(),
        )
        .releasing();
        match self.ports.commit.commit(commit.into()).await {
            Ok(()) => {
                (run.status, run.attempt) = (RunStatus::Pending, run.attempt + 1);
                self.registry.active.enqueue(active);
                self.ports.bell.ring(WakeSignal::Waiting);
                self.registry.dispatch_wake.wake();
            }
            Err(error) => {
                tracing::warn!(
                    run_id = %run.run_id, %error,
                    "the run was admitted under an expired lease; another process takes it over"
                );
                self.registry.active.remove(&run.run_id);
                active.detached();
            }
        }
    }
}

fn new_run(plan: &RunPlan, owner: NodeId, ports: &RuntimePorts) -> NewRun {
    let now = ports.clock.now();
    let delay = chrono::TimeDelta::from_std(plan.request().delay).unwrap_or_default();
    NewRun {
        run_id: plan.run_id.clone(),
        thread_id: plan.thread_id.clone(),
        user_id: Some(plan.actor().user_id.clone()),
        recipe: plan.stored.clone(),
        owner,
        most_waiting: plan.limits.max_enqueued,
        per_user: plan.limits.per_user,
        created_at: now.checked_add_signed(delay).unwrap_or(now),
        at: now,
    }
}

/// Ends a run that the store may have admitted although it reported a failure. The caller received
/// an error, so the run must not execute.
fn end_unacknowledged(run_id: RunId, created_at: DateTime<Utc>, runtime: &Arc<Runtime>) {
    let (runtime, stop) = (runtime.clone(), runtime.ports.tasks.token().clone());
    let tasks = runtime.ports.tasks.clone();
    tasks.spawn(TaskKind::Service, "unacknowledged admission", async move {
        for pause in ACKNOWLEDGE_CHECK_DELAYS {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let Ok(Some(run)) = runtime.ports.query.get(&run_id, &Owner::None).await else {
                continue;
            };
            // A run of this id with another creation time was admitted by a later request, which
            // was acknowledged.
            if run.status.is_terminal()
                || run.created_at.timestamp_micros() != created_at.timestamp_micros()
            {
                return;
            }
            // The owner, which may be another process by now, ends the run.
            let owner_ends_it = runtime.registry.node_lease.is_shared()
                || !run.status.is_owned()
                || runtime.registry.active(&run_id).is_some();
            if !owner_ends_it {
                if end_commit::end_orphan(
                    &run,
                    StopReason::OrphanRecovered,
                    LOST_TEXT,
                    &runtime.ports,
                )
                .await
                .stored(&runtime.ports)
                .await
                {
                    end_commit::notify_end(
                        &run,
                        run.cancel.is_none().then_some(LOST_TEXT),
                        &runtime.ports,
                    )
                    .await;
                }
                return;
            }
            match runtime
                .request_cancel(&run_id, CancelAction::Interrupt)
                .await
            {
                Ok(()) => return,
                Err(error) => tracing::warn!(
                    %run_id, %error,
                    "cannot end an unacknowledged run yet"
                ),
            }
        }
    });
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
