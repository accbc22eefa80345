//! One-line form of events, in which test cases state traces.

use super::event::{EventBody, FlowEvent};

/// Returns `name [node] [extra]`. `None` for deltas, edges and warnings. The extra is the handle or
/// action of a completed node, the status of a failed turn, the attempt of a retry, and the code of
/// an error.
pub fn compact(event: &FlowEvent) -> Option<String> {
    let extra = match &event.body {
        EventBody::Delta(_)
        | EventBody::EdgeTaken { .. }
        | EventBody::DelegationResolved(_)
        | EventBody::Warning { .. } => return None,
        EventBody::NodeCompleted { action, .. } => action.clone(),
        EventBody::TurnFailed { status, .. } => Some(status.as_str().to_owned()),
        EventBody::NodeRetry { attempt, .. } => Some(attempt.to_string()),
        EventBody::NodeFailed { error, .. } | EventBody::RunFailed(error) => {
            Some(error.code.clone())
        }
        _ => None,
    };
    let mut line = event.body.event_type().to_owned();
    let is_failure_of_run = matches!(event.body, EventBody::RunFailed(_));
    let node = event.node_id.as_deref().filter(|_| !is_failure_of_run);
    for part in node.into_iter().chain(extra.as_deref()) {
        line.push(' ');
        line.push_str(part);
    }
    Some(line)
}
