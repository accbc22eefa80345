//! Version of the assistant that a run executes: the current one, or that of the run that it
//! continues.

use crate::agent::AssistantPin;
use crate::checkpoint::{CheckpointError, HistoryQuery};
use crate::definition::{RunInput, RunRequest, RunScope};
use crate::kernel::RunError;
use crate::ports::RuntimePorts;

/// Returns the version for a run that is about to be accepted. Reads checkpoints only if the
/// assistant has versions or does not exist any more.
pub(crate) async fn at_admission(
    request: &RunRequest,
    ports: &RuntimePorts,
) -> Result<Option<AssistantPin>, RunError> {
    let current = ports
        .agents
        .pin(&request.assistant, &request.config.options)
        .await;
    if matches!(current, Ok(None)) {
        return Ok(None);
    }
    match continued(request, ports).await? {
        Some(pin) => Ok(Some(pin)),
        None => Ok(current?),
    }
}

/// Returns the version for an accepted run that starts now. A run that was queued may continue a
/// run that had no checkpoint at admission.
pub(crate) async fn at_start(
    accepted: Option<AssistantPin>,
    request: &RunRequest,
    ports: &RuntimePorts,
) -> Option<AssistantPin> {
    let accepted = accepted?;
    let pin = match continued(request, ports).await {
        Ok(continued) => continued,
        Err(error) => {
            tracing::warn!(
                %error,
                "cannot read the version of the run that is continued, using the accepted one"
            );
            None
        }
    };
    Some(pin.unwrap_or(accepted))
}

/// Returns the version that the checkpoint was written with that the run continues. `None` if the
/// run starts anew.
async fn continued(
    request: &RunRequest,
    ports: &RuntimePorts,
) -> Result<Option<AssistantPin>, CheckpointError> {
    let RunScope::Stateful { thread_id, .. } = &request.scope else {
        return Ok(None);
    };
    if matches!(request.input, RunInput::Update(_)) {
        return Ok(None);
    }
    let base = match &request.checkpoint {
        Some(requested) => {
            let id = Some(&requested.checkpoint_id);
            let snapshot = ports.checkpointer.get(thread_id, id).await?;
            snapshot.map(|snapshot| snapshot.meta)
        }
        None => {
            let newest = HistoryQuery {
                limit: 1,
                ..HistoryQuery::default()
            };
            let metas = ports.checkpointer.list_meta(thread_id, &newest).await?;
            metas.into_iter().next()
        }
    };
    Ok(base.and_then(|meta| AssistantPin::in_metadata(&meta.metadata, &request.assistant)))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
