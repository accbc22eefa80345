//! Tasks of a super-step: identity, input and result of one execution of a node.

use std::sync::Arc;

use serde_json::{Value, json};

use deerflow_core::messages::ToolCall;
use deerflow_core::state::{StateUpdate, ThreadState};

/// One task of a super-step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Id, stable while the task is pending.
    pub id: String,
    /// Name of the node.
    pub node: String,
    /// Number of the super-step, counted over the whole thread.
    pub step: u64,
    /// Index of the tool call, from 0, for a task that makes one call of an answer.
    pub call: Option<usize>,
}

/// Input of a task. Shared, not copied: it is serialized only for viewers of tasks.
#[derive(Debug, Clone)]
pub enum TaskInput {
    /// The whole state.
    State(Arc<ThreadState>),
    /// One tool call.
    Call(Arc<ToolCall>),
}

/// Result of a task.
#[derive(Debug, Clone, Default)]
pub struct TaskEnd {
    /// Update that the task wrote.
    pub update: Option<StateUpdate>,
    /// Error, if the task failed.
    pub error: Option<String>,
    /// Questions to the user, as `{"value": .., "id": ..}`.
    pub interrupts: Vec<Value>,
}

impl Task {
    /// Returns the namespace `node:task id`.
    pub fn namespace(&self) -> String {
        format!("{}:{}", self.node, self.id)
    }

    /// Returns the triggers as LangGraph Platform names them: calls of an answer are pushed, all
    /// other tasks are triggered by the channel of their node.
    pub fn triggers(&self) -> Vec<String> {
        vec![if self.call.is_some() {
            "__pregel_push".to_owned()
        } else {
            format!("branch:to:{}", self.node)
        }]
    }

    /// Returns the path of the task within its step, as LangGraph Platform defines it.
    pub fn path(&self) -> Vec<Value> {
        path_of(&self.node, self.call)
    }
}

/// Returns the path of a task of `node`, or of its n-th call.
pub fn path_of(node: &str, call: Option<usize>) -> Vec<Value> {
    match call {
        Some(nth) => vec![json!("__pregel_push"), json!(nth), json!(false)],
        None => vec![json!("__pregel_pull"), json!(node)],
    }
}
