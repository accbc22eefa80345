//! Start of a sub-flow: from its input, from the questions at which it stopped, or from the state that
//! an interrupted process saved.

use deerflow_runtime::agent::RunContext;
use deerflow_runtime::checkpoint::{NestedStates, PendingTask, within};
use serde_json::{Map, Value};

use super::attempt::{Attempt, RunScope};
use super::deps::{FlowOptions, FlowStart, NestedFlow, NestedPorts};
use super::history::Histories;
use crate::adapter::FlowError;
use crate::compiled::CompiledFlow;
use crate::machine::{Decision, FlowMachine, RunData};
use crate::prompt::input_text;

/// A sub-flow that is about to run.
pub(super) struct NestedLevel {
    pub(super) start: FlowStart,
    histories: Histories,
    /// States of agents and flows inside of its own tasks.
    nested: NestedStates,
}

impl NestedLevel {
    pub(super) fn start(
        scope: &RunScope<'_>,
        attempt: &Attempt,
        flow: &CompiledFlow,
        options: &FlowOptions,
    ) -> Result<Self, FlowError> {
        if let Some(saved) = &attempt.nested {
            return Self::answered(scope, attempt, flow, options, saved);
        }
        if let Some(level) = Self::interrupted(scope, attempt, flow, options) {
            return Ok(level);
        }
        let prompt = input_text(scope.input.user_prompt(), &attempt.input);
        let input = scope.input.with_prompt(&prompt);
        let now_ms = scope.emitter.now_ms();
        let machine = FlowMachine::new(flow, options.bounds.clone(), attempt.task_id, now_ms);
        let data = RunData::new(flow, input);
        Ok(Self {
            start: FlowStart::Prepared(Box::new(machine), Box::new(data)),
            histories: Histories::default(),
            nested: NestedStates::new(),
        })
    }

    /// Continues with the answers to its questions.
    fn answered(
        scope: &RunScope<'_>,
        attempt: &Attempt,
        flow: &CompiledFlow,
        options: &FlowOptions,
        saved: &Value,
    ) -> Result<Self, FlowError> {
        let bounds = options.bounds.clone();
        let mut machine = FlowMachine::restore(flow, bounds, saved["machine"].clone())?;
        let no_channels = Map::new();
        let data = RunData::restore(flow, saved["data"].as_object().unwrap_or(&no_channels))?;
        machine.begin_run(scope.emitter.now_ms());
        if let Some(answers) = &attempt.answer {
            machine.answer(answers.clone())?;
        }
        Ok(Self {
            start: FlowStart::Resumed(Box::new(machine), Box::new(data)),
            histories: serde_json::from_value(saved["histories"].clone()).unwrap_or_default(),
            nested: nested_states(scope, attempt),
        })
    }

    /// Continues at the state that the task saved. A run repeats a sub-flow that was complete in an
    /// earlier run.
    fn interrupted(
        scope: &RunScope<'_>,
        attempt: &Attempt,
        flow: &CompiledFlow,
        options: &FlowOptions,
    ) -> Option<Self> {
        if attempt.number > 1 {
            return None;
        }
        let state = scope.options.nested.get(&attempt.task_id.to_string())?;
        let saved = scope.ports.hooks.read_saved(state)?;
        let machine = FlowMachine::restore(flow, options.bounds.clone(), saved.machine);
        let data = RunData::restore(flow, &saved.channels);
        let (mut machine, data) = match (machine, data) {
            (Ok(machine), Ok(data)) => (machine, data),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(%error, "the state of a sub-flow is unreadable; it begins again");
                return None;
            }
        };
        let start = if saved.is_same_run {
            FlowStart::TakenOver(Box::new(machine), Box::new(data))
        } else {
            machine.begin_run(scope.emitter.now_ms());
            if machine.next(flow) == Decision::Finished {
                return None;
            }
            FlowStart::Resumed(Box::new(machine), Box::new(data))
        };
        Some(Self {
            start,
            histories: saved.histories,
            nested: nested_states(scope, attempt),
        })
    }

    /// Announces the sub-flow to the hooks.
    pub(super) fn observed(
        &mut self,
        scope: &RunScope<'_>,
        attempt: &Attempt,
        flow: &CompiledFlow,
        prefix: &str,
    ) -> Option<NestedPorts> {
        if !scope.is_observed {
            return None;
        }
        let (FlowStart::Prepared(machine, data)
        | FlowStart::Resumed(machine, data)
        | FlowStart::TakenOver(machine, data)) = &self.start
        else {
            return None;
        };
        let channels = data.channels(flow);
        scope.ports.hooks.clone().nested(NestedFlow {
            task_id: attempt.task_id,
            node_id: &scope.flow.nodes[attempt.node].id,
            prefix,
            flow,
            machine,
            channels,
            histories: self.histories.clone(),
        })
    }

    /// Returns the options of the sub-flow.
    pub(super) fn options(
        &mut self,
        scope: &RunScope<'_>,
        attempt: &Attempt,
        options: FlowOptions,
        is_observed: bool,
    ) -> FlowOptions {
        let node = &scope.flow.nodes[attempt.node].id;
        let namespace = format!("{node}:{}", attempt.task_id);
        let context = options.context.map(|context| {
            let inside = within(&context.namespace, &namespace).into();
            RunContext {
                namespace: if is_observed {
                    inside
                } else {
                    context.namespace.clone()
                },
                ..context
            }
        });
        FlowOptions {
            context,
            histories: std::mem::take(&mut self.histories),
            nested: std::mem::take(&mut self.nested),
            ..options
        }
    }
}

/// Returns the states of the tasks of the sub-flow that this task runs.
fn nested_states(scope: &RunScope<'_>, attempt: &Attempt) -> NestedStates {
    let state = scope.options.nested.get(&attempt.task_id.to_string());
    state.map_or_else(NestedStates::new, |state| {
        PendingTask::nested_states(&state.next)
    })
}
