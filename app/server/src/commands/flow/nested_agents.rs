//! States of the agents inside of nodes, for turns that continue after a question.

use std::collections::HashMap;

use deerflow_flow::driver::{RunHooks, VisitTask};
use harness::ids::{IdSource, SystemIds};
use harness::runtime::agent::{AgentEvent, StepEvent};
use harness::runtime::checkpoint::{CheckpointSource, NestedState, NestedStates};
use parking_lot::Mutex;

/// Saves the last state of each agent that runs inside of a node.
#[derive(Debug, Default)]
pub(super) struct NestedAgents {
    ids: SystemIds,
    saved: Mutex<Saved>,
}

#[derive(Debug, Default)]
struct Saved {
    /// Id of the last task by node.
    tasks: HashMap<String, String>,
    states: NestedStates,
}

impl NestedAgents {
    /// Returns the states by task id.
    pub(super) fn states(&self) -> NestedStates {
        self.saved.lock().states.clone()
    }

    fn state(&self, step: StepEvent) -> NestedState {
        NestedState {
            checkpoint_id: self.ids.checkpoint_id(),
            parent_id: None,
            source: CheckpointSource::Loop,
            step: i64::try_from(step.steps).unwrap_or(i64::MAX),
            next: step.next,
            machine: Some(step.machine),
            state: step.state,
            created_at: Default::default(),
        }
    }
}

impl RunHooks for NestedAgents {
    fn task_started(&self, task: VisitTask<'_>) {
        let id = task.task_id.to_string();
        self.saved.lock().tasks.insert(task.node_id.to_owned(), id);
    }

    fn agent_event(&self, node_id: &str, event: AgentEvent) {
        let AgentEvent::Step(step) = event else {
            return;
        };
        let state = self.state(step);
        let mut saved = self.saved.lock();
        if let Some(task) = saved.tasks.get(node_id).cloned() {
            saved.states.insert(task, state.into());
        }
    }
}
