//! Model calls of nested agents, whose tokens the runtime counts.

use deerflow_runtime::agent::AgentEvent;

/// Returns `true` for the record of a model call whose tokens the runtime counts.
pub(super) fn has_usage(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::ModelCall(call) => call.usage.is_some(),
        AgentEvent::Nested(_, event) => has_usage(event),
        _ => false,
    }
}
