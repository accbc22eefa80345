//! Admission, and the handles of the runs that wait or are executed here.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use tokio::sync::{Notify, broadcast};

use super::bell::Ring;
use super::error::RunError;
use super::live::{LiveRun, LiveRuns, Stop};
use super::looks::RunLooks;
use super::membership::Membership;
use super::parts::{RunLimits, RuntimeParts};
use super::plan::ExecutionPlan;
use super::queue::{Doorbell, end_unstarted};
use super::record::RunRecord;
use super::recovery::{self, ORPHAN_RECOVERED};
use super::settling::SettlingRuns;
use super::spec::CancelAction;
use super::status::RunStatus;
use super::store::{AdmitError, NewRun, Recipe, RunCommit};
use crate::ids::{NodeId, RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::fail_points;
use crate::runtime::tasks::TaskKind;

/// How long after one another to look for a run whose admission may or may not have been written. Together they outlast a write that
/// is under way; a store that is short of connections is not asked more often than that.
const ABANDON_PAUSES: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(8),
    Duration::from_secs(20),
    Duration::from_secs(30),
];

/// Proof that a run owns its thread's slot. Only admission and the queue make one, and launching consumes it.
#[derive(Debug)]
pub(super) struct RunTicket {
    pub(super) record: RunRecord,
    pub(super) live: Arc<LiveRun>,
}

/// What admission gives.
#[derive(Debug)]
pub(super) enum Admission {
    /// The run may be launched.
    Now(RunTicket),
    /// The run waits for its turn or its time; the queue starts it.
    Later(RunTicket),
}

/// Admits runs and keeps the handles of those that wait or are executed here.
#[derive(Debug)]
pub struct RunRegistry {
    /// Bounds of the runs that begin from now on.
    pub(super) limits: RwLock<RunLimits>,
    pub(super) live: LiveRuns,
    pub(super) doorbell: Doorbell,
    /// Has the membership look at what became of its runs.
    pub(super) look: Notify,
    pub(super) membership: Membership,
    pub(super) settling: SettlingRuns,
    pub(super) looks: RunLooks,
    /// Says on which thread a run begins here.
    pub(super) launches: broadcast::Sender<ThreadId>,
}

/// A viewer of a thread that is farther behind looks for itself.
const LAUNCHES_KEPT: usize = 256;

impl RunRegistry {
    /// Without runs, for the process `node`.
    pub(super) fn new(node: NodeId, limits: RunLimits) -> Self {
        Self {
            limits: RwLock::new(limits),
            live: LiveRuns::default(),
            doorbell: Doorbell::default(),
            look: Notify::new(),
            membership: Membership::new(node),
            settling: SettlingRuns::default(),
            looks: RunLooks::default(),
            launches: broadcast::Sender::new(LAUNCHES_KEPT),
        }
    }

    /// Admits the plan, and tells those to stop that are in its way if its strategy says so. When it returns, the run is committed.
    #[tracing::instrument(name = "admit", skip_all)]
    pub(super) async fn admit(
        self: &Arc<Self>,
        plan: &ExecutionPlan,
        recipe: Arc<Recipe>,
        parts: &RuntimeParts,
    ) -> Result<Admission, RunError> {
        // Known before it is committed: a cancel that finds the row finds the handle, too.
        let live = LiveRun::new();
        if !self.live.insert_new(&plan.run_id, &live) {
            // Its handle belongs to the run that is there.
            return Err(AdmitError::RunExists(plan.run_id.clone()).into());
        }
        let owner = self.membership.node();
        let new = new_run(plan, recipe, owner.clone(), parts);
        let made_at = new.created_at;
        let mut admitted = match parts.create.admit(new).await {
            Ok(admitted) => admitted,
            Err(error) => {
                self.live.remove(&plan.run_id);
                // Who can ask again under the same key gets the run, should it be there: nobody works on it, so it is given back.
                if matches!(error, AdmitError::Store(_)) && plan.request.is_none() {
                    abandon(plan.run_id.clone(), made_at, self, parts);
                }
                return Err(error.into());
            }
        };
        fail_points::pass("run.admitted");
        // Before anything else is waited for: its turn may come at once.
        live.set_waiting(!admitted.run.status.is_owned());
        for run in &admitted.displaced {
            self.stop(run, parts).await;
            fail_points::pass("run.displaced");
        }
        if admitted.run.status.is_owned() && !self.membership.holds(&owner) {
            self.give_back(&mut admitted.run, &live, parts).await;
            return Ok(Admission::Later(RunTicket {
                record: admitted.run,
                live,
            }));
        }
        let ticket = RunTicket {
            record: admitted.run,
            live,
        };
        if ticket.record.status.is_owned() {
            return Ok(Admission::Now(ticket));
        }
        parts.bell.ring(Ring::Waiting);
        Ok(Admission::Later(ticket))
    }

    /// Has a run wait that was admitted under a lease which has lapsed since: for whoever lives.
    async fn give_back(&self, run: &mut RunRecord, live: &LiveRun, parts: &RuntimeParts) {
        let commit = RunCommit::new(
            run.run_id.clone(),
            run.thread_id.clone(),
            run.attempt,
            parts.clock.now(),
        )
        .giving_back();
        match parts.commit.commit(commit).await {
            Ok(()) => {
                (run.status, run.attempt) = (RunStatus::Pending, run.attempt + 1);
                live.set_waiting(true);
                self.doorbell.ring();
            }
            Err(error) => {
                tracing::warn!(run_id = %run.run_id, %error, "a run was admitted under a lease that has lapsed, and is taken over soon");
                self.live.remove(&run.run_id);
                live.left();
            }
        }
    }

    /// Writes the intent to cancel, then acts on it.
    pub(super) async fn request_cancel(
        self: &Arc<Self>,
        run_id: &RunId,
        action: CancelAction,
        parts: &RuntimeParts,
    ) -> Result<(), RunError> {
        let Some(record) = parts
            .create
            .request_cancel(run_id, action, parts.clock.now())
            .await?
        else {
            return Err(RunError::NotFound(run_id.clone()));
        };
        fail_points::pass("cancel.written");
        self.stop(&record, parts).await;
        fail_points::pass("cancel.told");
        Ok(())
    }

    /// Stops a run that is durably told to stop: ends it if it waits, tells it if it is executed here.
    async fn stop(self: &Arc<Self>, record: &RunRecord, parts: &RuntimeParts) {
        if record.status.is_terminal() {
            return;
        }
        if !record.status.is_owned() {
            end_unstarted(record, self, parts).await;
        } else if let Some(live) = self
            .live
            .get(&record.run_id)
            .filter(|live| !live.is_waiting())
        {
            live.stop(Stop::Cancel(
                record.cancel.unwrap_or(CancelAction::Interrupt),
            ));
        } else {
            parts.bell.ring(Ring::Cancelled(record.run_id.clone()));
        }
    }

    pub(super) fn live(&self, run_id: &RunId) -> Option<Arc<LiveRun>> {
        self.live.get(run_id)
    }
}

fn new_run(
    plan: &ExecutionPlan,
    recipe: Arc<Recipe>,
    owner: NodeId,
    parts: &RuntimeParts,
) -> NewRun {
    let now = parts.clock.now();
    let delay = chrono::TimeDelta::from_std(plan.delay).unwrap_or_default();
    NewRun {
        run_id: plan.run_id.clone(),
        thread_id: plan.thread_id.clone(),
        if_not_exists: plan.if_not_exists,
        temporary_thread: plan.temporary_thread,
        thread_ttl: plan.thread_ttl,
        assistant: plan.assistant.clone(),
        user_id: Some(plan.actor.user_id.clone()),
        metadata: plan.metadata.clone(),
        kwargs: plan.kwargs.clone(),
        multitask: plan.multitask,
        model_name: plan
            .options
            .get("model_name")
            .and_then(serde_json::Value::as_str)
            .map(str::to_owned),
        webhook: plan.webhook.clone(),
        request: plan.request.clone(),
        recipe,
        owner,
        most_waiting: plan.limits.max_enqueued,
        created_at: now.checked_add_signed(delay).unwrap_or(now),
        at: now,
    }
}

/// A store that failed may have admitted the run all the same. Nobody was told, so the run is ended should it appear.
fn abandon(
    run_id: RunId,
    made_at: DateTime<Utc>,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) {
    let (registry, parts, stop) = (registry.clone(), parts.clone(), parts.tasks.token().clone());
    let tasks = parts.tasks.clone();
    tasks.spawn(TaskKind::Service, "abandoned admission", async move {
        for pause in ABANDON_PAUSES {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
            let Ok(Some(run)) = parts.query.get(&run_id, &Owner::None).await else { continue };
            // One of that id that was made at another time was admitted since, and acknowledged.
            if run.status.is_terminal() || run.created_at.timestamp_micros() != made_at.timestamp_micros() {
                return;
            }
            // Its owner ends it, who may be another process by now.
            let is_told = registry.membership.is_shared() || !run.status.is_owned() || registry.live(&run_id).is_some();
            if !is_told {
                if recovery::end_orphan(&run, ORPHAN_RECOVERED, recovery::LOST, &parts).await.stored(&parts).await {
                    recovery::tell_end(&run, run.cancel.is_none().then_some(recovery::LOST), &parts).await;
                }
                return;
            }
            match registry.request_cancel(&run_id, CancelAction::Interrupt, &parts).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%run_id, %error, "a run that was not acknowledged cannot be ended yet"),
            }
        }
    });
}
