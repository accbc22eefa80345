//! Launches a run and ensures that it ends.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::admission::{RunPlan, RunTicket};
use crate::definition::{RunFailure, RunRecord, RunStatus, StopReason};
use crate::encoding::error_frame;
use crate::execution;
use crate::kernel::{ActiveRun, PolledRun, RunOutcome, Runtime, StopSignal};
use crate::ports::{LifecycleKind, RunLifecycleEvent, RuntimePorts, WakeSignal};
use crate::stream_bridge::{StreamKey, TerminalKind};
use crate::termination::{LOST_TEXT, end_commit, terminal_of};
use deerflow_core::actor_context::{self, Owner};
use deerflow_core::compute::offloading;
use deerflow_core::tasks::panic_text;

/// Handle of an admitted run in this process.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// Record of the run at admission.
    pub record: RunRecord,
    pub(crate) active: Arc<ActiveRun>,
}

/// Announces the run as starting. Returns its handle and the future that executes it, which a task
/// must poll to its end: a caller that disconnects does not stop the run.
#[tracing::instrument(name = "launch", skip_all)]
pub(crate) fn launch(
    ticket: RunTicket,
    plan: RunPlan,
    runtime: &Arc<Runtime>,
) -> (RunHandle, BoxFuture<'static, ()>) {
    let RunTicket {
        record,
        active,
        head,
    } = ticket;
    active.set_status(RunStatus::Starting);
    if runtime.ports.tasks.token().is_cancelled() {
        // The run was claimed just before shutdown began.
        active.stop(StopSignal::Release);
    }
    let handle = RunHandle {
        record: record.clone(),
        active: active.clone(),
    };
    // There may be no subscriber.
    let _no_subscriber = runtime.registry.launches.send(record.thread_id.clone());
    let actor = plan.actor().clone();
    let departure_event = RunLifecycleEvent::of(&record, LifecycleKind::RunLeft);
    let run_id = record.run_id.clone();
    let polled = PolledRun::new(
        run_id.clone(),
        record.thread_id.clone(),
        record.attempt,
        active.clone(),
    );
    let runtime = runtime.clone();
    // Created outside of the `async` block, which would store the arguments twice.
    let execution = offloading(execution::run(
        plan,
        record,
        head,
        runtime.clone(),
        active.clone(),
    ));
    let work = actor_context::scope(actor, async move {
        let execution = active.wait.observe(execution);
        let execution = AssertUnwindSafe(runtime.registry.polled.observe(polled, execution));
        let outcome = match execution.catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let text = panic_text(panic.as_ref());
                Box::pin(end_panicked(departure_event, &text, &runtime.ports)).await
            }
        };
        runtime.registry.active.remove_exactly(&run_id, &active);
        match outcome {
            Some(outcome) => {
                runtime.ports.bell.ring(WakeSignal::Ended(run_id));
                active.finished(outcome);
            }
            None => active.detached(),
        }
        if runtime.registry.active.any_waiting() {
            runtime.registry.dispatch_wake.wake();
        }
    });
    (handle, work.boxed())
}

/// Ends a run whose execution panicked outside of the agent. The stored end is that of a run whose
/// process died; it is published after it is durable. Returns `None` if callers must read the end
/// from the store.
async fn end_panicked(
    departure_event: RunLifecycleEvent,
    panic: &str,
    ports: &RuntimePorts,
) -> Option<RunOutcome> {
    tracing::error!(panic, "the execution of a run panicked");
    let (run_id, attempt) = (departure_event.run_id.clone(), departure_event.attempt);
    departure_event.notify(&*ports.observer).await;
    match ports.query.get(&run_id, &Owner::None).await {
        Ok(Some(run)) if !run.status.is_terminal() && run.attempt == attempt => {
            let end =
                end_commit::end_orphan(&run, StopReason::OrphanRecovered, LOST_TEXT, ports).await;
            if !end.stored(ports).await {
                return None;
            }
            end_commit::notify_end(&run, run.cancel.is_none().then_some(LOST_TEXT), ports).await;
        }
        Ok(Some(run)) if run.attempt == attempt => {
            publish_stored_end(&run, ports).await;
            return None;
        }
        Ok(_) => return None,
        Err(error) => {
            tracing::error!(%error, "cannot read the run; it is recovered at the next start");
            return None;
        }
    }
    let failure = RunFailure::new("InternalError", "the run failed unexpectedly");
    let key = StreamKey { run_id, attempt };
    publish_end(&key, TerminalKind::Error, Some(&failure), ports).await;
    Some(RunOutcome {
        status: RunStatus::Error,
        error: Some(failure.into()),
        values: None,
    })
}

/// Publishes the end of a run that was stored before its execution panicked. The panic may have
/// prevented the publication.
async fn publish_stored_end(run: &RunRecord, ports: &RuntimePorts) {
    let Some(kind) = terminal_of(run) else { return };
    let failure = run
        .error
        .as_deref()
        .filter(|_| kind == TerminalKind::Error)
        .map(|text| RunFailure::new(run.error_name(), text));
    let key = StreamKey {
        run_id: run.run_id.clone(),
        attempt: run.attempt,
    };
    publish_end(&key, kind, failure.as_ref(), ports).await;
    ports.bell.ring(WakeSignal::Ended(run.run_id.clone()));
}

async fn publish_end(
    key: &StreamKey,
    kind: TerminalKind,
    failure: Option<&RunFailure>,
    ports: &RuntimePorts,
) {
    let data = failure.map(|failure| {
        error_frame(&failure.name, &failure.message)
            .data
            .into_bytes()
    });
    if let Err(error) = ports.bridge.publish_terminal(key, kind, data).await {
        tracing::warn!(%error, "cannot publish the end of the run to its stream");
    }
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
