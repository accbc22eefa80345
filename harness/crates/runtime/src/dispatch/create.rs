//! Creates runs: plans them, admits them, and launches or queues them.

use std::sync::Arc;

use super::dispatcher;
use super::supervisor::{RunHandle, launch};
use crate::admission::{Admission, RunTicket, message_limits, pins, plan};
use crate::agent::AssistantPin;
use crate::definition::{RunRequest, StoreError};
use crate::kernel::{RunError, Runtime};
use deerflow_core::actor_context::{self, ActorContext};
use deerflow_core::compute::continuing;
use deerflow_core::tasks::TaskKind;

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
    // Admission runs in its own task: a caller that disconnects must not leave an admitted run that
    // is never launched.
    let task_runtime = runtime.clone();
    let admission = async move {
        Ok(match task_runtime.admit(&plan).await? {
            Admission::Ready(ticket) => launch(ticket, plan, &task_runtime),
            Admission::Queued(RunTicket { record, active, .. }) => {
                dispatcher::start(&task_runtime);
                RunHandle { record, active }
            }
        })
    };
    let admitted = runtime
        .ports
        .tasks
        .spawn(TaskKind::Finish, "admission", continuing(admission))
        .await;
    admitted
        .map_err(|error| StoreError::Unavailable(error.to_string()))?
        .map_err(|panic| StoreError::Failed(panic.to_string()))?
}
