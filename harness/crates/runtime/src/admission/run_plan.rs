//! Plan of a run: its request, and the ids, agent and limits that planning resolved.

use std::sync::Arc;

use crate::agent::{Agent, AssistantPin};
use crate::definition::{RequestEcho, RunInput, RunLimits, RunRequest};
use crate::ports::StoredRunRequest;
use deerflow_core::actor_context::ActorContext;
use deerflow_core::ids::{RunId, ThreadId};

/// Validated and resolved settings of an execution. Only the planner builds one.
#[derive(Debug, Clone)]
pub struct RunPlan {
    pub(super) run_id: RunId,
    pub(super) thread_id: ThreadId,
    /// Request with its actor. The store receives the same allocation.
    pub(super) stored: Arc<StoredRunRequest>,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) recursion_limit: u64,
    pub(super) limits: RunLimits,
}

impl RunPlan {
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

    /// Returns the request that was planned.
    pub fn request(&self) -> &RunRequest {
        &self.stored.spec
    }

    /// Frees the echo and the messages of the request, after they were applied: they may be large.
    /// Has no effect if the store shares the request.
    pub(crate) fn free_input(&mut self) {
        if let Some(stored) = Arc::get_mut(&mut self.stored) {
            stored.spec.presentation.request_echo = RequestEcho::default();
            if let RunInput::Update(update) = &mut stored.spec.input {
                update.messages = Vec::new();
            }
        }
    }

    /// Returns the agent that executes the run.
    pub(crate) fn agent(&self) -> &Arc<dyn Agent> {
        &self.agent
    }

    /// Returns the limits that applied when the run was planned.
    pub(crate) fn limits(&self) -> &RunLimits {
        &self.limits
    }

    /// Returns the plan of a run that executes this version of its assistant.
    pub(crate) fn with_pin(mut self, pin: Option<AssistantPin>) -> Self {
        Arc::make_mut(&mut self.stored).pin = pin;
        self
    }

    /// Returns the version of the assistant that the run executes; `None` for an assistant without
    /// versions.
    pub fn pin(&self) -> Option<&AssistantPin> {
        self.stored.pin.as_ref()
    }

    /// Returns the actor who made the request.
    pub fn actor(&self) -> &ActorContext {
        &self.stored.actor
    }
}
