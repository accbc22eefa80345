//! Admission: the store gives the thread's only slot, the registry deals with a slot that is taken.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::error::RunError;
use super::live::{LiveRun, LiveRuns};
use super::parts::RuntimeParts;
use super::plan::ExecutionPlan;
use super::record::RunRecord;
use super::recovery;
use super::slot::{SlotDecision, decide};
use super::spec::CancelAction;
use super::store::{AdmitError, NewRun};
use crate::ids::RunId;
use crate::runtime::actor_context::Owner;
use crate::runtime::tasks::TaskKind;

/// How often a run of another process is looked at while waiting for its end.
pub(super) const REMOTE_POLL: Duration = Duration::from_millis(100);

/// How often, and how long after one another, to look for a run whose admission may or may not have been written.
const ABANDON_LOOKS: u32 = 60;
const ABANDON_PAUSE: Duration = Duration::from_secs(1);

/// Proof that a run is accepted and durable. Only admission makes one, and launching consumes it.
#[derive(Debug)]
pub struct RunTicket {
    pub(super) record: RunRecord,
    pub(super) live: Arc<LiveRun>,
}

/// Admits runs and keeps the handles of those executed here.
#[derive(Debug, Default)]
pub struct RunRegistry {
    pub(super) live: LiveRuns,
}

impl RunRegistry {
    /// Takes the thread's slot for the plan, making room first if its strategy says so. When it returns, the run is committed.
    #[tracing::instrument(name = "admit", skip_all)]
    pub async fn admit(&self, plan: &ExecutionPlan, parts: &RuntimeParts) -> Result<RunTicket, RunError> {
        // Known before it is committed: a cancel that finds the row finds the handle, too.
        let live = LiveRun::new();
        self.live.insert(plan.run_id.clone(), live.clone());
        let admitted = self.take_slot(plan, parts).await;
        if admitted.is_err() {
            self.live.remove(&plan.run_id);
        }
        admitted.map(|record| RunTicket { record, live })
    }

    async fn take_slot(&self, plan: &ExecutionPlan, parts: &RuntimeParts) -> Result<RunRecord, RunError> {
        let deadline = Instant::now() + plan.limits.make_room;
        loop {
            match parts.create.admit(new_run(plan, parts)).await {
                Ok(record) => return Ok(record),
                Err(AdmitError::ThreadBusy { thread_id, active }) => {
                    // Gone between the two reads means the slot is free again: try once more.
                    let Some(holder) = parts.query.get(&active, &Owner::None).await?.filter(|run| !run.status.is_terminal()) else {
                        if Instant::now() >= deadline {
                            return Err(RunError::NoRoom(active));
                        }
                        continue;
                    };
                    match decide(plan.multitask, &holder) {
                        SlotDecision::Refuse => return Err(AdmitError::ThreadBusy { thread_id, active }.into()),
                        SlotDecision::MakeRoom(action) => self.request_cancel(&active, action, parts).await?,
                        SlotDecision::AwaitEnd => {}
                    }
                    self.await_end(&active, deadline, parts).await?;
                }
                Err(AdmitError::Store(error)) => {
                    abandon(plan.run_id.clone(), parts);
                    return Err(error.into());
                }
                Err(refused) => return Err(refused.into()),
            }
        }
    }

    /// Writes the intent to cancel, then tells the run if it is executed here.
    pub(super) async fn request_cancel(&self, run_id: &RunId, action: CancelAction, parts: &RuntimeParts) -> Result<(), RunError> {
        let Some(record) = parts.create.request_cancel(run_id, action, parts.clock.now()).await? else {
            return Err(RunError::NotFound(run_id.clone()));
        };
        if let Some(live) = self.live.get(run_id) {
            live.cancel(record.cancel.unwrap_or(action));
        }
        Ok(())
    }

    async fn await_end(&self, run_id: &RunId, deadline: Instant, parts: &RuntimeParts) -> Result<(), RunError> {
        let ended = async {
            if let Some(live) = self.live.get(run_id) {
                live.ended().await;
                return Ok::<(), RunError>(());
            }
            while parts.query.get(run_id, &Owner::None).await?.is_some_and(|run| !run.status.is_terminal()) {
                tokio::time::sleep(REMOTE_POLL).await;
            }
            Ok(())
        };
        tokio::time::timeout_at(deadline, ended).await.map_err(|_| RunError::NoRoom(run_id.clone()))?
    }

    pub(super) fn live(&self, run_id: &RunId) -> Option<Arc<LiveRun>> {
        self.live.get(run_id)
    }
}

fn new_run(plan: &ExecutionPlan, parts: &RuntimeParts) -> NewRun {
    NewRun {
        run_id: plan.run_id.clone(),
        thread_id: plan.thread_id.clone(),
        if_not_exists: plan.if_not_exists,
        temporary_thread: plan.temporary_thread,
        assistant: plan.assistant.clone(),
        user_id: Some(plan.actor.user_id.clone()),
        metadata: plan.metadata.clone(),
        kwargs: plan.kwargs.clone(),
        multitask: plan.multitask,
        model_name: plan.options.get("model_name").and_then(serde_json::Value::as_str).map(str::to_owned),
        created_at: parts.clock.now(),
    }
}

/// A store that failed may have admitted the run all the same. Nobody was told, so the run is ended should it appear.
fn abandon(run_id: RunId, parts: &RuntimeParts) {
    let (parts, stop) = (parts.clone(), parts.tasks.token().clone());
    let tasks = parts.tasks.clone();
    tasks.spawn(TaskKind::Service, "abandoned admission", async move {
        for _ in 0..ABANDON_LOOKS {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ABANDON_PAUSE) => {}
            }
            match parts.query.get(&run_id, &Owner::None).await {
                Ok(Some(run)) if run.status.is_terminal() => return,
                Ok(Some(run)) => match recovery::end_orphan(&run, &parts).await {
                    Ok(()) => return,
                    Err(error) => tracing::warn!(%run_id, %error, "a run that was not acknowledged cannot be ended yet"),
                },
                Ok(None) | Err(_) => {}
            }
        }
    });
}
