//! Starts the task of a run and sees that it ends.

use std::sync::Arc;

use super::execution;
use super::live::LiveRun;
use super::parts::RuntimeParts;
use super::plan::ExecutionPlan;
use super::record::RunRecord;
use super::registry::{RunRegistry, RunTicket};
use super::status::RunStatus;
use crate::runtime::actor_context;
use crate::runtime::tasks::TaskKind;

/// A run under way in this process.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// The run as it was admitted.
    pub record: RunRecord,
    pub(super) live: Arc<LiveRun>,
}

/// Spawns the run's task. It lives on when the caller goes away.
#[tracing::instrument(name = "launch", skip_all)]
pub(super) fn launch(ticket: RunTicket, plan: ExecutionPlan, registry: &Arc<RunRegistry>, parts: &RuntimeParts) -> RunHandle {
    let record = ticket.record;
    let live = LiveRun::new();
    live.set_status(RunStatus::Starting);
    registry.live.insert(record.run_id.clone(), live.clone());
    let work = {
        let (record, live, registry, parts) = (record.clone(), live.clone(), registry.clone(), parts.clone());
        let actor = plan.actor.clone();
        actor_context::scope(actor, async move {
            let run_id = record.run_id.clone();
            let outcome = execution::run(plan, record, parts, live.clone()).await;
            registry.live.remove(&run_id);
            live.finished(outcome);
        })
    };
    parts.tasks.spawn(TaskKind::Run, "run", work);
    RunHandle { record, live }
}
