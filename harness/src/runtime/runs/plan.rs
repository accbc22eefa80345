//! A run that has been thought through and may be admitted.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::parts::RunLimits;
use super::spec::{
    CheckpointRef, Durability, IfNotExists, MultitaskStrategy, NodeSelector, RunInput, StreamModes,
};
use super::store::RequestKey;
use super::ttl::ThreadTtl;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::ActorContext;
use crate::runtime::agent::Agent;

/// Everything that execution needs, decided. Only the planner makes one.
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
    /// The run it is for.
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The thread it is on.
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// Most super-steps, clamped.
    pub fn recursion_limit(&self) -> u64 {
        self.recursion_limit
    }
}
