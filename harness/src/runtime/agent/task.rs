//! A node at work: what tells one task from another, what it was given, and how it ended.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::messages::ToolCall;
use crate::state::{StateUpdate, ThreadState};

/// One task of a super-step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Stable while the task is due.
    pub id: String,
    /// Its node.
    pub node: String,
    /// The super-step, counted over the whole thread.
    pub step: u64,
    /// For a task that makes one call of an answer: which, from 0.
    pub call: Option<usize>,
}

/// What a task was given. Shared, not copied: it is serialized for those who ask for tasks.
#[derive(Debug, Clone)]
pub enum TaskInput {
    /// The whole state.
    State(Arc<ThreadState>),
    /// One call.
    Call(Arc<ToolCall>),
}

/// How a task ended.
#[derive(Debug, Clone, Default)]
pub struct TaskEnd {
    /// What it wrote.
    pub update: Option<StateUpdate>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// What it asked a person, as `{"value": .., "id": ..}`.
    pub interrupts: Vec<Value>,
}

impl Task {
    /// `node:task id`.
    pub fn namespace(&self) -> String {
        format!("{}:{}", self.node, self.id)
    }

    /// What made it run, in the platform's words: an answer's calls are pushed, everything else follows its node's channel.
    pub fn triggers(&self) -> Vec<String> {
        vec![if self.call.is_some() {
            "__pregel_push".to_owned()
        } else {
            format!("branch:to:{}", self.node)
        }]
    }

    /// Where it stands among the tasks of its step, in the platform's words.
    pub fn path(&self) -> Vec<Value> {
        path_of(&self.node, self.call)
    }
}

/// The path of a task of `node`, or of its n-th call.
pub fn path_of(node: &str, call: Option<usize>) -> Vec<Value> {
    match call {
        Some(nth) => vec![json!("__pregel_push"), json!(nth), json!(false)],
        None => vec![json!("__pregel_pull"), json!(node)],
    }
}
