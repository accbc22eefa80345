//! Builds the execution plan of a request, without I/O.

use std::sync::Arc;

use super::plan::ExecutionPlan;
use super::ports::RunLimits;
use super::spec::{RunScope, RunSpec};
use crate::agent::Agent;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::ids::IdSource;

/// Resolves the ids, limits and agent of a run. Pure except for the ids that it generates.
#[tracing::instrument(name = "plan", skip_all)]
pub fn plan(
    spec: RunSpec,
    agent: Arc<dyn Agent>,
    actor: ActorContext,
    limits: &RunLimits,
    ids: &dyn IdSource,
) -> ExecutionPlan {
    let (thread_id, if_not_exists, temporary_thread) = match spec.scope {
        RunScope::Stateful {
            thread_id,
            if_not_exists,
        } => (thread_id, if_not_exists, false),
        RunScope::Stateless { temporary } => {
            (ids.thread_id(), super::spec::IfNotExists::Create, temporary)
        }
    };
    ExecutionPlan {
        run_id: spec.run_id.unwrap_or_else(|| ids.run_id()),
        thread_id,
        if_not_exists,
        temporary_thread,
        thread_ttl: spec.thread_ttl.filter(|_| !temporary_thread),
        assistant: spec.assistant,
        agent,
        actor,
        input: spec.input,
        options: Arc::new(spec.config.options),
        tags: spec.config.tags,
        recursion_limit: clamp_recursion(spec.config.recursion_limit, limits),
        metadata: spec.metadata,
        kwargs: spec.kwargs,
        modes: spec.stream_modes,
        echo_input: spec.echo_input,
        describe_messages: spec.describe_messages,
        subgraphs: spec.stream_subgraphs,
        keep_partial: spec.keep_partial,
        durability: spec.durability,
        interrupt_before: spec.interrupt_before,
        interrupt_after: spec.interrupt_after,
        multitask: spec.multitask,
        delay: spec.delay,
        webhook: spec.webhook,
        request: spec.request,
        checkpoint: spec.checkpoint,
        limits: *limits,
    }
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
