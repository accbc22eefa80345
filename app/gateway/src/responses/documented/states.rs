//! States of threads.

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::threads::Interrupt;
use crate::requests::bodies::Checkpoint;

/// A pending task.
#[derive(Debug, ToSchema)]
pub struct Task {
    /// Id of the task.
    pub id: String,
    /// Name of the node.
    pub name: String,
    /// Path of the task.
    pub path: Value,
    /// Error, if there is one.
    #[schema(required = true)]
    pub error: Option<String>,
    /// Interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Reference to the nested agent, if its state is not included.
    #[schema(value_type = Option<Object>, required = true)]
    pub checkpoint: Option<Map<String, Value>>,
    /// State of the nested agent.
    #[schema(required = true, no_recursion)]
    pub state: Option<Box<ThreadState>>,
    /// Result of the task.
    pub result: Value,
}

/// State of a thread at a checkpoint.
#[derive(Debug, ToSchema)]
pub struct ThreadState {
    /// Channel values.
    #[schema(value_type = Object)]
    pub values: Map<String, Value>,
    /// Pending nodes.
    pub next: Vec<String>,
    /// Pending tasks.
    pub tasks: Vec<Task>,
    /// Metadata of the checkpoint.
    #[schema(value_type = Option<Object>, required = true)]
    pub metadata: Option<Map<String, Value>>,
    /// Time of creation.
    #[schema(format = "date-time", required = true)]
    pub created_at: Option<String>,
    /// Reference to the checkpoint.
    #[schema(required = true)]
    pub checkpoint: Option<Checkpoint>,
    /// Reference to the previous checkpoint.
    #[schema(required = true)]
    pub parent_checkpoint: Option<Checkpoint>,
    /// Interrupts.
    pub interrupts: Vec<Interrupt>,
    /// Id of the checkpoint.
    #[schema(format = "uuid", required = true)]
    pub checkpoint_id: Option<String>,
    /// Id of the previous checkpoint.
    #[schema(format = "uuid", required = true)]
    pub parent_checkpoint_id: Option<String>,
}

/// The new checkpoint.
#[derive(Debug, ToSchema)]
pub struct StateUpdated {
    /// Reference to the checkpoint.
    pub checkpoint: Checkpoint,
    /// Reference to the checkpoint.
    pub configurable: Checkpoint,
    /// Id of the checkpoint.
    #[schema(format = "uuid")]
    pub checkpoint_id: String,
}

/// States, newest first.
#[derive(Debug, ToSchema)]
pub struct ThreadStates(pub Vec<ThreadState>);
