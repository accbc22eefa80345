//! Serialized form of the loop machine, from which any process can resume a run.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::interrupts::Interrupts;
use super::nodes::{LoopNodes, LoopPosition};
use crate::runtime::agent::AgentError;
use crate::runtime::runs::GotoTarget;

/// Version of the serialized form.
const VERSION: u32 = 1;

/// Serialized form of a machine. It contains node names instead of indices, because the middlewares
/// of an agent may change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedMachine {
    version: u32,
    /// Name of the next node.
    at: String,
    /// Seed that makes the task ids of this machine unique.
    seed: Uuid,
    /// Number of tasks since the start of the machine.
    pub(super) serial: u64,
    /// Progress of the current tool batch.
    #[serde(default)]
    pub(super) batch: Batch,
    /// Interrupts of the current tool batch.
    #[serde(default)]
    pub(super) questions: Interrupts,
    /// Input of the next node instead of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<Value>,
    /// Nodes that a command requested after the next node.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty")]
    pub(super) visits: VecDeque<GotoTarget>,
}

/// Progress of a tool batch; a batch with interrupts takes several attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Batch {
    pub(super) goto_end: bool,
    /// `true` if every result so far is the run's result; `None` before the first.
    pub(super) all_direct: Option<bool>,
}

impl SavedMachine {
    pub(super) fn new(seed: Uuid) -> Self {
        Self {
            version: VERSION,
            at: String::new(),
            seed,
            serial: 0,
            batch: Batch::default(),
            questions: Interrupts::default(),
            input: None,
            visits: VecDeque::new(),
        }
    }

    /// Returns the saved position. Fails if this agent does not have the node or the version is
    /// unknown.
    pub(super) fn position(&self, nodes: &LoopNodes) -> Result<LoopPosition, AgentError> {
        if self.version != VERSION {
            return Err(AgentError::Resume(format!(
                "the saved position has version {}, but this agent reads version {VERSION}",
                self.version
            )));
        }
        nodes.position(&self.at).ok_or_else(|| {
            AgentError::Resume(format!("the agent no longer has a node {:?}", self.at))
        })
    }

    /// Serializes a machine at `node`.
    pub(super) fn at(&self, node: &str) -> Value {
        let saved = Self {
            at: node.to_owned(),
            ..self.clone()
        };
        serde_json::to_value(saved).unwrap_or(Value::Null)
    }

    /// Returns the id of the pending task at `node`.
    pub(super) fn task_id(&self, node: &str) -> String {
        Uuid::new_v5(&self.seed, format!("{}:{node}", self.serial).as_bytes()).to_string()
    }
}
