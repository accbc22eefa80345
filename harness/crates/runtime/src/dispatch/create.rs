//! Creates runs: plans them, admits them, and launches or queues them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::dispatcher;
use super::supervisor::{RunHandle, launch};
use crate::admission::{Admission, RunPlan, RunTicket, message_limits, pins, plan};
use crate::agent::AssistantPin;
use crate::definition::{RunRequest, StoreError};
use crate::kernel::{RunError, Runtime};
use deerflow_core::actor_context::{self, ActorContext};
use deerflow_core::compute::continuing;
use deerflow_core::tasks::{TaskKind, requeue};

/// Creates a run for the bound actor, or for the default user if no actor is bound. The run is
/// durable before this returns.
pub(crate) async fn create(
    mut request: RunRequest,
    runtime: &Arc<Runtime>,
) -> Result<RunHandle, RunError> {
    if runtime.ports.tasks.token().is_cancelled() {
        return Err(RunError::ShuttingDown);
    }
    if runtime.registry.node_lease.is_displaced() {
        return Err(
            StoreError::Unavailable("another process has taken the store lock".to_owned()).into(),
        );
    }
    let actor = actor_context::current()
        .unwrap_or_else(|| ActorContext::user(actor_context::DEFAULT_USER_ID));
    request.metadata.shift_remove(AssistantPin::METADATA_KEY);
    let pin = pins::at_admission(&request, &runtime.ports).await?;
    let agent = runtime
        .ports
        .agents
        .resolve_pinned(&request.assistant, &request.config.options, pin.as_ref())
        .await?;
    let limits = *runtime.registry.limits.read();
    message_limits::check(&request, agent.channels(), &limits, &runtime.ports).await?;
    let plan = plan(request, agent, actor, &limits, &*runtime.ports.ids).with_pin(pin);
    if let Some(requested) = &plan.request().checkpoint
        && runtime
            .ports
            .checkpointer
            .get(plan.thread_id(), Some(&requested.checkpoint_id))
            .await?
            .is_none()
    {
        return Err(RunError::CheckpointNotFound(
            requested.checkpoint_id.clone(),
        ));
    }
    // The task of the run admits it: a caller that disconnects must not leave an admitted run that
    // is never launched.
    let (sender, admitted) = oneshot::channel();
    let admitting = runtime.clone();
    let admission = continuing(async move {
        let admission = admitting.admit(&plan).await;
        launch_or_queue(admission, plan, sender, &admitting)
    });
    let task = runtime.ports.tasks.spawn(TaskKind::Run, "run", async move {
        if let Some(work) = admission.await {
            // The caller, which is woken by now, continues first: it responds, or subscribes and waits
            // for the stream.
            requeue().await;
            work.await;
        }
    });
    if let Ok(admitted) = admitted.await {
        return admitted;
    }
    task.await
        .map_err(|error| StoreError::Unavailable(error.to_string()))?
        .map_err(|panic| StoreError::Failed(panic.to_string()))?;
    Err(StoreError::Failed("the admission ended without a result".to_owned()).into())
}

/// Launches an admitted run, or wakes the dispatcher for a queued one. Sends the handle or the error
/// to the caller, which may have disconnected. Returns the work of a launched run.
fn launch_or_queue(
    admission: Result<Admission, RunError>,
    plan: RunPlan,
    caller: oneshot::Sender<Result<RunHandle, RunError>>,
    runtime: &Arc<Runtime>,
) -> Option<BoxFuture<'static, ()>> {
    let (handle, work) = match admission {
        Ok(Admission::Ready(ticket)) => {
            let (handle, work) = launch(ticket, plan, runtime);
            (Ok(handle), Some(work))
        }
        Ok(Admission::Queued(RunTicket { record, active, .. })) => {
            dispatcher::start(runtime);
            (Ok(RunHandle { record, active }), None)
        }
        Err(error) => (Err(error), None),
    };
    let _disconnected = caller.send(handle);
    work
}
