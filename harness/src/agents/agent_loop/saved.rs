//! What of a machine outlives its process: enough for any other process to go on.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::nodes::{LoopNodes, Place};
use super::questions::Questions;
use crate::runtime::agent::AgentError;
use crate::runtime::runs::Visit;

/// The version of the saved form.
const VERSION: u32 = 1;

/// The saved form of a machine. Names, not numbers: an agent may have gained a middleware since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Saved {
    version: u32,
    /// The node that is due.
    at: String,
    /// Makes the ids of tasks this machine's own.
    seed: Uuid,
    /// Counts the tasks since the machine began.
    pub(super) serial: u64,
    /// What the batch of calls under way has come to.
    #[serde(default)]
    pub(super) batch: Batch,
    /// What the batch of calls under way asked.
    #[serde(default)]
    pub(super) questions: Questions,
    /// What the node that is due works on instead of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<Value>,
    /// Where a command sent the loop after the node that is due.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) visits: VecDeque<Visit>,
}

/// How the calls of a batch ended so far; a batch with questions takes several goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Batch {
    pub(super) goto_end: bool,
    /// Whether every result so far is the run's result; `None` before the first.
    pub(super) all_direct: Option<bool>,
}

impl Saved {
    pub(super) fn new(seed: Uuid) -> Self {
        Self {
            version: VERSION,
            at: String::new(),
            seed,
            serial: 0,
            batch: Batch::default(),
            questions: Questions::default(),
            input: None,
            visits: VecDeque::new(),
        }
    }

    /// Where the machine stood, if this agent has such a node.
    pub(super) fn place(&self, nodes: &LoopNodes) -> Result<Place, AgentError> {
        if self.version != VERSION {
            return Err(AgentError::Resume(format!(
                "its saved position has version {}, this agent reads {VERSION}",
                self.version
            )));
        }
        nodes.place(&self.at).ok_or_else(|| {
            AgentError::Resume(format!("the agent no longer has a node {:?}", self.at))
        })
    }

    /// The saved form of a machine at `node`.
    pub(super) fn at(&self, node: &str) -> Value {
        let saved = Self {
            at: node.to_owned(),
            ..self.clone()
        };
        serde_json::to_value(saved).unwrap_or(Value::Null)
    }

    /// The id of the task that is due at `node`.
    pub(super) fn task_id(&self, node: &str) -> String {
        Uuid::new_v5(&self.seed, format!("{}:{node}", self.serial).as_bytes()).to_string()
    }
}
