//! Reporters of sub-flows: each is a nested agent of the task that runs it.

use std::sync::Arc;

use deerflow_core::state::ThreadState;
use deerflow_runtime::agent::{AgentEvent, RunContext};
use deerflow_runtime::checkpoint::{NestedState, within};
use serde::Deserialize;

use super::saved_flow::SavedFlow;
use super::steps::StepReporter;
use crate::driver::{NestedFlow, SavedLevel};

/// Place of a sub-flow in the enclosing flow.
#[derive(Debug)]
pub(super) struct Outer {
    reporter: Arc<StepReporter>,
    /// `node:task id` of the task that runs the sub-flow.
    namespace: Arc<str>,
}

impl StepReporter {
    /// Creates the reporter of a sub-flow.
    pub(super) fn inside(self: &Arc<Self>, level: &NestedFlow<'_>) -> Self {
        let namespace: Arc<str> = format!("{}:{}", level.node_id, level.task_id).into();
        let ctx = RunContext {
            namespace: within(&self.ctx.namespace, &namespace).into(),
            ..self.ctx.clone()
        };
        let channels = level.channels.clone().into_iter().collect();
        let definition = self.progress.lock().state.definition().clone();
        let state = ThreadState::restored([], channels).defined_by(definition);
        Self {
            outer: Some(Outer {
                reporter: self.clone(),
                namespace,
            }),
            ..Self::new(level.flow, &ctx, state, 0, &level.histories)
        }
    }

    /// Sends an event of this flow: one of a sub-flow within the task that runs it.
    pub(super) fn send(&self, event: AgentEvent) {
        match &self.outer {
            Some(Outer {
                reporter,
                namespace,
            }) => reporter.send(AgentEvent::Nested(namespace.clone(), Box::new(event))),
            None => self.ctx.sink.emit(event),
        }
    }

    /// Sends an event that names its node with the enclosing flows.
    pub(super) fn send_for_run(&self, event: AgentEvent) {
        match &self.outer {
            Some(outer) => outer.reporter.send_for_run(event),
            None => self.send(event),
        }
    }

    /// Reports whether this is a sub-flow.
    pub(super) fn is_nested(&self) -> bool {
        self.outer.is_some()
    }
}

/// Reads the state that a sub-flow saved. `None` if it is unreadable.
pub(super) fn read_saved(ctx: &RunContext, state: &NestedState) -> Option<SavedLevel> {
    let mut saved = SavedFlow::deserialize(state.machine.as_ref()?).ok()?;
    let mut values = ThreadState::clone(&state.state);
    values.apply(saved.take_values(), &*ctx.ids).ok()?;
    let channels = values.channels().iter();
    Some(SavedLevel {
        channels: channels
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        is_same_run: saved.is_of(ctx.run_id.as_str()),
        machine: saved.into_machine(),
    })
}
