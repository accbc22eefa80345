//! Starts the task of a run and sees that it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;

use super::bell::Ring;
use super::execution;
use super::live::{LiveRun, RunOutcome, Stop};
use super::observer::{LifecycleKind, RunLifecycleEvent};
use super::parts::RuntimeParts;
use super::plan::ExecutionPlan;
use super::record::RunRecord;
use super::recovery::{self, ORPHAN_RECOVERED};
use super::registry::{RunRegistry, RunTicket};
use super::status::RunStatus;
use crate::runtime::actor_context::{self, Owner};
use crate::runtime::compute::offloading;
use crate::runtime::serialization::error_frame;
use crate::runtime::stream_bridge::{StreamKey, TerminalKind};
use crate::runtime::tasks::{TaskKind, panic_text};

/// A run under way in this process.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// The run as it was admitted.
    pub record: RunRecord,
    pub(super) live: Arc<LiveRun>,
}

/// Spawns the run's task. It lives on when the caller goes away.
#[tracing::instrument(name = "launch", skip_all)]
pub(super) fn launch(
    ticket: RunTicket,
    plan: ExecutionPlan,
    registry: &Arc<RunRegistry>,
    parts: &RuntimeParts,
) -> RunHandle {
    let RunTicket { record, live } = ticket;
    live.set_waiting(false);
    live.set_status(RunStatus::Starting);
    if parts.tasks.token().is_cancelled() {
        // Taken a moment before the process began to end.
        live.stop(Stop::HandOver);
    }
    let work = {
        let (record, live, registry, parts) = (
            record.clone(),
            live.clone(),
            registry.clone(),
            parts.clone(),
        );
        let actor = plan.actor.clone();
        actor_context::scope(actor, async move {
            let left = RunLifecycleEvent::of(&record, LifecycleKind::RunLeft);
            let run_id = record.run_id.clone();
            let execution = AssertUnwindSafe(offloading(execution::run(
                plan,
                record,
                parts.clone(),
                live.clone(),
            )));
            let outcome = match execution.catch_unwind().await {
                Ok(outcome) => outcome,
                Err(panic) => end_panicked(left, &panic_text(panic.as_ref()), &parts).await,
            };
            registry.live.remove_exactly(&run_id, &live);
            match outcome {
                Some(outcome) => {
                    parts.bell.ring(Ring::Ended(run_id));
                    live.finished(outcome);
                }
                None => live.left(),
            }
            if registry.live.any_waiting() {
                registry.doorbell.ring();
            }
        })
    };
    let thread = record.thread_id.clone();
    parts.tasks.spawn(TaskKind::Run, "run", work);
    // Nobody may be listening.
    let _heard = registry.launches.send(thread);
    RunHandle { record, live }
}

/// What an agent does wrong is caught within the execution. This is for the rest: the run ends all the same, as if its process
/// had died. Nobody is told before that is durable.
async fn end_panicked(
    left: RunLifecycleEvent,
    panic: &str,
    parts: &RuntimeParts,
) -> Option<RunOutcome> {
    tracing::error!(panic, "the execution of a run panicked");
    let (run_id, attempt) = (left.run_id.clone(), left.attempt);
    left.tell(&*parts.observer).await;
    match parts.query.get(&run_id, &Owner::None).await {
        Ok(Some(run)) if !run.status.is_terminal() && run.attempt == attempt => {
            let ending = recovery::end_orphan(&run, ORPHAN_RECOVERED, recovery::LOST, parts).await;
            if !ending.stored(parts).await {
                return None;
            }
            recovery::tell_end(&run, run.cancel.is_none().then_some(recovery::LOST), parts).await;
        }
        Ok(Some(run)) if run.attempt == attempt => {}
        Ok(_) => return None,
        Err(error) => {
            tracing::error!(%error, "the run cannot be read; it is recovered at the next start");
            return None;
        }
    }
    let (name, text) = ("InternalError", "the run failed unexpectedly");
    let key = StreamKey { run_id, attempt };
    let data = error_frame(name, text).data.into_bytes();
    if let Err(error) = parts
        .bridge
        .publish_terminal(&key, TerminalKind::Error, Some(data))
        .await
    {
        tracing::warn!(%error, "the end did not reach the stream");
    }
    Some(RunOutcome {
        status: RunStatus::Error,
        error: Some((name.to_owned(), text.to_owned())),
        values: None,
    })
}
