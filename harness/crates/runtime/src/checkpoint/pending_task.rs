//! Tasks that are pending at a checkpoint, each with the state of the agent inside of its call.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::source::CheckpointSource;
use deerflow_core::ids::CheckpointId;
use deerflow_core::state::ThreadState;

/// A pending node and the interrupts it waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingTask {
    /// Id, stable while the task is pending.
    pub id: String,
    /// Name of the node.
    pub name: String,
    /// Questions to the user, as `[{"value": .., "id": ..}]`.
    #[serde(default)]
    pub interrupts: Vec<Value>,
    /// Error of the last execution, if it failed.
    #[serde(default)]
    pub error: Option<String>,
    /// Nested agent that the task's call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested: Option<Arc<NestedState>>,
}

/// Name of a pending node.
pub type PendingNode = String;

/// Newest state of an agent inside a call. Earlier states of such an agent are not stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedState {
    /// Id of the checkpoint; greater as text than all earlier ones.
    pub checkpoint_id: CheckpointId,
    /// Checkpoint that it follows.
    pub parent_id: Option<CheckpointId>,
    /// Source of the checkpoint.
    pub source: CheckpointSource,
    /// Step: -1 for the input, then increasing by one.
    pub step: i64,
    /// Pending nodes, which may contain nested agents; empty if the agent has completed.
    pub next: Vec<PendingTask>,
    /// State machine of the agent, with the data of its call.
    pub machine: Option<Value>,
    /// State of the agent.
    pub state: Arc<ThreadState>,
    /// Time of creation.
    pub created_at: DateTime<Utc>,
}

/// States of nested agents by the ids of the tasks that make the calls.
pub type NestedStates = HashMap<String, Arc<NestedState>>;

impl PendingTask {
    /// Creates a task that has not started.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            interrupts: Vec::new(),
            error: None,
            nested: None,
        }
    }

    /// Returns the namespace `node:task id`.
    pub fn namespace(&self) -> String {
        format!("{}:{}", self.name, self.id)
    }

    /// Copies nested agents from `before` to the tasks of `next` that are still pending.
    pub fn carry_over(next: &mut [Self], before: &[Self]) {
        for earlier in before.iter().filter(|earlier| earlier.nested.is_some()) {
            if let Some(task) = next
                .iter_mut()
                .find(|task| task.id == earlier.id && task.nested.is_none())
            {
                task.nested.clone_from(&earlier.nested);
            }
        }
    }

    /// Returns the nested agents of these tasks.
    pub fn nested_states(next: &[Self]) -> NestedStates {
        next.iter()
            .filter_map(|task| Some((task.id.clone(), task.nested.clone()?)))
            .collect()
    }
}
