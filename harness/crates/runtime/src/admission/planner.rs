//! Builds the plan of a run from its request, without I/O.

use std::sync::Arc;

use super::run_plan::RunPlan;
use crate::agent::Agent;
use crate::definition::{RunInput, RunLimits, RunRequest, RunScope, ThreadCommand};
use crate::ports::StoredRunRequest;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::ids::IdSource;

/// Resolves the ids, limits and agent of a run. Pure except for the ids that it generates.
#[tracing::instrument(name = "plan", skip_all)]
pub fn plan(
    mut request: RunRequest,
    agent: Arc<dyn Agent>,
    actor: ActorContext,
    limits: &RunLimits,
    ids: &dyn IdSource,
) -> RunPlan {
    let thread_id = match &request.scope {
        RunScope::Stateful { thread_id, .. } => thread_id.clone(),
        RunScope::Stateless { .. } => ids.thread_id(),
    };
    set_message_ids(&mut request.input, ids);
    RunPlan {
        run_id: request.run_id.clone().unwrap_or_else(|| ids.run_id()),
        thread_id,
        agent,
        recursion_limit: clamp_recursion(request.config.recursion_limit, limits),
        limits: *limits,
        stored: Arc::new(StoredRunRequest {
            spec: request,
            actor,
            pin: None,
        }),
    }
}

/// Generates the missing ids of the input's messages, so that each attempt of the run has the same.
fn set_message_ids(input: &mut RunInput, ids: &dyn IdSource) {
    let (RunInput::Update(update) | RunInput::Command(ThreadCommand { update, .. })) = input else {
        return;
    };
    let messages = std::mem::take(&mut update.messages).into_iter();
    update.messages = messages.map(|message| message.identified(ids)).collect();
}

/// Replaces a missing limit and zero by the default, and caps the result at the configured maximum.
fn clamp_recursion(requested: Option<u64>, limits: &RunLimits) -> u64 {
    requested
        .filter(|limit| *limit > 0)
        .unwrap_or(limits.default_recursion_limit)
        .min(limits.max_recursion_limit)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_limit_is_defaulted_and_clamped() {
        let limits = RunLimits::default();
        for (requested, expected) in [
            (None, 100),
            (Some(0), 100),
            (Some(7), 7),
            (Some(1_000), 1_000),
            (Some(u64::MAX), 1_000),
        ] {
            assert_eq!(
                clamp_recursion(requested, &limits),
                expected,
                "{requested:?}"
            );
        }
    }
}
