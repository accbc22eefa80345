//! Update of a thread that a client writes as a node of the agent (`as_node`).

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::checkpoint::PendingTask;
use deerflow_core::state::{StateUpdate, ThreadState};

/// Values that a client writes as a node.
#[derive(Debug)]
pub struct NodeWrite<'a> {
    /// Node; also `__start__` and `__end__`.
    pub node: &'a str,
    /// Values as the client sent them.
    pub values: Map<String, Value>,
    /// State before the write.
    pub state: &'a ThreadState,
    /// Saved state machine of the agent before the write.
    pub machine: Option<&'a Value>,
    /// Makes the ids of tasks unique.
    pub seed: Uuid,
}

/// Position and state after a write as a node.
#[derive(Debug, Default)]
pub struct NodeWritten {
    /// Update that the node's values make.
    pub update: StateUpdate,
    /// Values that are left for channels.
    pub values: Map<String, Value>,
    /// Tasks that are pending after the write.
    pub next: Vec<PendingTask>,
    /// Saved state machine after the write.
    pub machine: Option<Value>,
}
