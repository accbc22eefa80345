//! Execution plan of a run: the resolved settings with which it is admitted and executed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::ports::RunLimits;
use super::spec::{
    CheckpointRef, Durability, IfNotExists, MultitaskStrategy, NodeSelector, RunInput,
};
use super::store::RequestKey;
use super::stream_modes::StreamModes;
use super::ttl::ThreadTtl;
use crate::agent::Agent;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::ids::{RunId, ThreadId};

/// Validated and resolved settings of an execution. Only the planner builds one.
#[derive(Debug, Clone)]
pub struct ExecutionPlan {
    pub(super) run_id: RunId,
    pub(super) thread_id: ThreadId,
    pub(super) if_not_exists: IfNotExists,
    pub(super) temporary_thread: bool,
    pub(super) thread_ttl: Option<ThreadTtl>,
    pub(super) assistant: String,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) actor: ActorContext,
    pub(super) input: RunInput,
    pub(super) options: Arc<Map<String, Value>>,
    pub(super) tags: Vec<String>,
    pub(super) recursion_limit: u64,
    pub(super) metadata: Map<String, Value>,
    pub(super) kwargs: Value,
    pub(super) modes: StreamModes,
    pub(super) echo_input: bool,
    pub(super) describe_messages: bool,
    pub(super) subgraphs: bool,
    pub(super) keep_partial: bool,
    pub(super) durability: Durability,
    pub(super) interrupt_before: NodeSelector,
    pub(super) interrupt_after: NodeSelector,
    pub(super) multitask: MultitaskStrategy,
    pub(super) delay: Duration,
    pub(super) webhook: Option<String>,
    pub(super) request: Option<RequestKey>,
    pub(super) checkpoint: Option<CheckpointRef>,
    pub(super) limits: RunLimits,
}

impl ExecutionPlan {
    /// Returns the id of the planned run.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// Returns the id of the run's thread.
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// Returns the maximum number of super-steps, clamped to the configured limit.
    pub fn recursion_limit(&self) -> u64 {
        self.recursion_limit
    }
}
