//! Facts of a run that events contain.

use serde_json::{Map, Value};

use deerflow_core::ids::{RunId, ThreadId};

/// Facts of the run that every event contains.
#[derive(Debug)]
pub struct RunFacts {
    /// Id of the run.
    pub run_id: RunId,
    /// Id of the thread.
    pub thread_id: ThreadId,
    /// Number of the attempt.
    pub attempt: u32,
    /// Name of the assistant, and of the events of the run itself.
    pub assistant: String,
    /// Metadata of the run.
    pub metadata: Map<String, Value>,
}
