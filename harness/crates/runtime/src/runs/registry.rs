//! Admission of runs, and the handles of queued and executed runs.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use tokio::sync::{Notify, broadcast};

use super::active_run::{ActiveRun, ActiveRuns, StopSignal};
use super::dispatch_wake::DispatchWake;
use super::end_commit::{self, LOST_TEXT};
use super::error::RunError;
use super::finalization_guard::FinalizationGuards;
use super::node_lease::NodeLease;
use super::node_notifier::WakeSignal;
use super::plan::RunPlan;
use super::ports::{RunLimits, RuntimePorts};
use super::record::RunRecord;
use super::request::CancelAction;
use super::status::RunStatus;
use super::status_poller::StatusPollers;
use super::stop_reason::ORPHAN_RECOVERED;
use super::store::{AdmitError, NewRun, RunCommit};
use super::terminate::end_queued;
use deerflow_core::actor_context::Owner;
use deerflow_core::fail_points;
use deerflow_core::ids::{NodeId, RunId, ThreadId};
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
pub(super) struct RunTicket {
    pub(super) record: RunRecord,
    pub(super) active: Arc<ActiveRun>,
}

/// Result of an admission.
#[derive(Debug)]
pub(super) enum Admission {
    /// The run owns its thread and may be launched.
    Ready(RunTicket),
    /// The run is queued; the dispatcher starts it.
    Queued(RunTicket),
}

/// Admits runs, and stores the handles of queued and executed runs.
#[derive(Debug)]
pub struct RunRegistry {
    /// Limits of the runs that start from now on.
    pub(super) limits: RwLock<RunLimits>,
    pub(super) active: ActiveRuns,
    pub(super) dispatch_wake: DispatchWake,
    /// Makes the lease keeper read the runs of this node at once.
    pub(super) lease_wake: Notify,
    pub(super) node_lease: NodeLease,
    pub(super) finalization: FinalizationGuards,
    pub(super) pollers: StatusPollers,
    /// Announces the threads on which a run starts here.
    pub(super) launches: broadcast::Sender<ThreadId>,
}

/// Capacity of the launch announcements. A thread subscriber that falls behind polls the store.
const LAUNCH_CHANNEL_CAPACITY: usize = 256;

impl RunRegistry {
    /// Creates an empty registry for the process `node`.
    pub(super) fn new(node: NodeId, limits: RunLimits) -> Self {
        Self {
            limits: RwLock::new(limits),
            active: ActiveRuns::default(),
            dispatch_wake: DispatchWake::default(),
            lease_wake: Notify::new(),
            node_lease: NodeLease::new(node),
            finalization: FinalizationGuards::default(),
            pollers: StatusPollers::default(),
            launches: broadcast::Sender::new(LAUNCH_CHANNEL_CAPACITY),
        }
    }

    /// Admits the plan, and cancels the runs that its strategy displaces. The run is committed when
    /// this returns.
    #[tracing::instrument(name = "admit", skip_all)]
    pub(super) async fn admit(
        self: &Arc<Self>,
        plan: &RunPlan,
        ports: &RuntimePorts,
    ) -> Result<Admission, RunError> {
        // The handle exists before the row is committed, so that a cancel that reads the row can
        // use it.
        let active = ActiveRun::new();
        if !self.active.insert_new(&plan.run_id, &active) {
            // The handle belongs to the existing run.
            return Err(AdmitError::RunExists(plan.run_id.clone()).into());
        }
        let owner = self.node_lease.node();
        let new = new_run(plan, owner.clone(), ports);
        let created_at = new.created_at;
        let mut admitted = match ports.create.admit(new).await {
            Ok(admitted) => admitted,
            Err(error) => {
                self.active.remove(&plan.run_id);
                // A retry under the same request key returns the run if it exists. No task executes
                // it, so it is released and started.
                if matches!(error, AdmitError::Store(_))
                    && plan.request().idempotency_key().is_none()
                {
                    end_unacknowledged(plan.run_id.clone(), created_at, self, ports);
                }
                return Err(error.into());
            }
        };
        fail_points::pass("run.admitted");
        // Set before the next await: the run may be started at any time.
        active.set_waiting(!admitted.run.status.is_owned());
        for run in &admitted.displaced {
            self.stop(run, ports).await;
            fail_points::pass("run.displaced");
        }
        if admitted.run.status.is_owned() && !self.node_lease.holds(&owner) {
            self.release(&mut admitted.run, &active, ports).await;
            return Ok(Admission::Queued(RunTicket {
                record: admitted.run,
                active,
            }));
        }
        let ticket = RunTicket {
            record: admitted.run,
            active,
        };
        if ticket.record.status.is_owned() {
            return Ok(Admission::Ready(ticket));
        }
        ports.bell.ring(WakeSignal::Waiting);
        Ok(Admission::Queued(ticket))
    }

    /// Releases a run that was admitted under an expired lease, so that another process starts it.
    async fn release(&self, run: &mut RunRecord, active: &ActiveRun, ports: &RuntimePorts) {
        let commit = RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            ports.clock.now(),
        )
        .releasing();
        match ports.commit.commit(commit).await {
            Ok(()) => {
                (run.status, run.attempt) = (RunStatus::Pending, run.attempt + 1);
                active.set_waiting(true);
                self.dispatch_wake.wake();
            }
            Err(error) => {
                tracing::warn!(
                    run_id = %run.run_id, %error,
                    "the run was admitted under an expired lease; another process takes it over"
                );
                self.active.remove(&run.run_id);
                active.detached();
            }
        }
    }

    /// Records the cancel request, then applies it.
    pub(super) async fn request_cancel(
        self: &Arc<Self>,
        run_id: &RunId,
        action: CancelAction,
        ports: &RuntimePorts,
    ) -> Result<(), RunError> {
        let Some(record) = ports
            .create
            .request_cancel(run_id, action, ports.clock.now())
            .await?
        else {
            return Err(RunError::NotFound(run_id.clone()));
        };
        fail_points::pass("cancel.written");
        self.stop(&record, ports).await;
        fail_points::pass("cancel.told");
        Ok(())
    }

    /// Applies a recorded cancel request: ends a queued run, and signals the owner of an executed
    /// one.
    async fn stop(self: &Arc<Self>, record: &RunRecord, ports: &RuntimePorts) {
        if record.status.is_terminal() {
            return;
        }
        if !record.status.is_owned() {
            end_queued(record, self, ports).await;
        } else if let Some(active) = self
            .active
            .get(&record.run_id)
            .filter(|active| !active.is_waiting())
        {
            active.stop(StopSignal::Cancel(
                record.cancel.unwrap_or(CancelAction::Interrupt),
            ));
        } else {
            ports
                .bell
                .ring(WakeSignal::Cancelled(record.run_id.clone()));
        }
    }

    pub(super) fn active(&self, run_id: &RunId) -> Option<Arc<ActiveRun>> {
        self.active.get(run_id)
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
        created_at: now.checked_add_signed(delay).unwrap_or(now),
        at: now,
    }
}

/// Ends a run that the store may have admitted although it reported a failure. The caller received
/// an error, so the run must not execute.
fn end_unacknowledged(
    run_id: RunId,
    created_at: DateTime<Utc>,
    registry: &Arc<RunRegistry>,
    ports: &RuntimePorts,
) {
    let (registry, ports, stop) = (registry.clone(), ports.clone(), ports.tasks.token().clone());
    let tasks = ports.tasks.clone();
    tasks.spawn(TaskKind::Service, "unacknowledged admission", async move {
        for pause in ACKNOWLEDGE_CHECK_DELAYS {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let Ok(Some(run)) = ports.query.get(&run_id, &Owner::None).await else {
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
            let owner_ends_it = registry.node_lease.is_shared()
                || !run.status.is_owned()
                || registry.active(&run_id).is_some();
            if !owner_ends_it {
                if end_commit::end_orphan(&run, ORPHAN_RECOVERED, LOST_TEXT, &ports)
                    .await
                    .stored(&ports)
                    .await
                {
                    end_commit::notify_end(&run, run.cancel.is_none().then_some(LOST_TEXT), &ports)
                        .await;
                }
                return;
            }
            match registry
                .request_cancel(&run_id, CancelAction::Interrupt, &ports)
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
