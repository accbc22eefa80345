//! Reporters of sub-flows: each is a nested agent of the task that runs it.

use std::sync::Arc;

use deerflow_core::state::ThreadState;
use deerflow_runtime::agent::{AgentEvent, RunContext};
use deerflow_runtime::checkpoint::{NestedState, within};
use serde::Deserialize;

use super::saved_flow::SavedFlow;
use super::start::histories_in;
use super::step_changes::StepChanges;
use super::steps::{Outer, StepReporter};
use crate::driver::{NestedFlow, SavedLevel};

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
        let mut state = ThreadState::restored([], channels).defined_by(definition);
        for (agent, messages) in &level.histories {
            let histories = state.histories_mut();
            histories.push(agent, messages.iter().cloned(), messages.len());
        }
        Self {
            outer: Some(Outer {
                reporter: self.clone(),
                namespace,
                prefix: level.prefix.to_owned(),
            }),
            ..Self::new(level.flow, &ctx, state, 0, StepChanges::default())
        }
    }

    /// Sends an event of this flow: one of a sub-flow within the task that runs it.
    pub(super) fn send(&self, event: AgentEvent) {
        match &self.outer {
            Some(Outer {
                reporter,
                namespace,
                ..
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

    /// Returns the id of a node without those of the enclosing flows.
    pub(super) fn own_node<'a>(&self, node: &'a str) -> &'a str {
        let prefix = self.outer.as_ref().map_or("", |outer| &outer.prefix);
        node.strip_prefix(prefix).unwrap_or(node)
    }

    /// Reads the state that a sub-flow saved. `None` if it is unreadable.
    pub(super) fn saved_level(&self, state: &NestedState) -> Option<SavedLevel> {
        let mut saved = SavedFlow::deserialize(state.machine.as_ref()?).ok()?;
        let is_same_run = saved.is_of(self.ctx.run_id.as_str());
        let saved_histories = saved.take_histories();
        let (machine, mut changes) = saved.into_parts().ok()?;
        let mut values = ThreadState::clone(&state.state);
        values.apply(changes.take_update(), &*self.ctx.ids).ok()?;
        for (agent, messages) in saved_histories {
            let length = messages.len();
            values.histories_mut().push(&agent, messages, length);
        }
        changes.take_turns(values.histories_mut());
        let channels = values.channels().iter();
        Some(SavedLevel {
            channels: channels
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            histories: histories_in(&values),
            is_same_run,
            machine,
        })
    }
}
