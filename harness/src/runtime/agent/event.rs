//! What an agent says while it works.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::live_output::LiveOutput;
use super::middleware_action::MiddlewareAction;
use super::subagent::SubagentEvent;
use super::task::{Task, TaskEnd, TaskInput};
use crate::messages::{Message, MessageChunk, UsageMetadata};
use crate::runtime::checkpoint::PendingTask;
use crate::state::{StateUpdate, ThreadState};

/// One thing an agent says.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A super-step is finished: the state after it, and what is due next.
    Step(StepEvent),
    /// A fragment of a model's answer.
    Token(Box<MessageChunk>, Arc<MessageMeta>),
    /// A whole message that enters the state by other means than tokens.
    Message(Message, Arc<MessageMeta>),
    /// A payload for `custom` viewers.
    Custom(Value),
    /// What a call prints while it is at work, for `custom` viewers.
    LiveOutput(Box<LiveOutput>),
    /// News of an agent that a call sets to work.
    Subagent(Box<SubagentEvent>),
    /// A task (a node at work) begins.
    TaskStart(Arc<Task>, TaskInput),
    /// A task ended.
    TaskEnd(Arc<Task>, TaskEnd),
    /// What an agent inside a call says, under the call's `node:task id`.
    Nested(Arc<str>, Box<AgentEvent>),
    /// A model was asked; for the journal.
    ModelRequest {
        /// Who asked: `lead_agent`, `subagent:x`, `middleware:x`.
        caller: String,
        /// The model entry's name.
        model: String,
        /// How many messages were sent.
        message_count: usize,
        /// The id that the answer will have.
        message_id: String,
    },
    /// A model is shown what is remembered of the user; for the journal.
    MemoryShown {
        /// The SHA-256 of the text, in hex.
        content_sha256: Arc<str>,
    },
    /// A middleware refused a call, held it back or took it out of an answer; for the journal.
    MiddlewareAction(Box<MiddlewareAction>),
    /// A model answered; for the journal and the token count.
    ModelCall(ModelCallRecord),
    /// A model call failed for good; for the journal.
    ModelError {
        /// Who asked.
        caller: String,
        /// What went wrong.
        error: String,
    },
    /// A tool begins.
    ToolStart {
        /// The call.
        call_id: String,
        /// The tool.
        name: String,
    },
    /// A tool ended.
    ToolEnd(ToolCallRecord),
    /// The agent waits for a person without ending the run; limits on silence do not count until its next event.
    AwaitingInput,
    /// The agent is done; nothing follows.
    Done(AgentOutcome),
}

/// A finished super-step.
#[derive(Debug, Clone)]
pub struct StepEvent {
    /// The node: `model`, `tools`, `TitleMiddleware.after_model`, ...
    pub node: String,
    /// What it wrote; `None` when it wrote nothing.
    pub update: Option<StateUpdate>,
    /// The state after it.
    pub state: Arc<ThreadState>,
    /// What is due next.
    pub next: Vec<PendingTask>,
    /// Where the agent's machine stands, so that another process can go on from here.
    pub machine: Value,
    /// Super-steps of the run so far.
    pub steps: u64,
    /// Whether the step is worth a checkpoint; steps that only lead to the next one are not.
    pub checkpoint: bool,
}

/// What clients learn about where a message comes from. Only what they rely on: no configuration, no secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MessageMeta {
    /// The thread.
    pub thread_id: String,
    /// The run.
    pub run_id: String,
    /// Counts super-steps.
    pub langgraph_step: u64,
    /// The node.
    pub langgraph_node: String,
    /// What made the node run.
    pub langgraph_triggers: Vec<String>,
    /// Where the node's work stands among that of its step.
    pub langgraph_path: Vec<Value>,
    /// `node:task id`.
    pub langgraph_checkpoint_ns: String,
    /// The same.
    pub checkpoint_ns: String,
    /// Model and agent facts: `model_name`, `agent_name`, `ls_provider`, ...
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A model call that ended well.
#[derive(Debug, Clone)]
pub struct ModelCallRecord {
    /// Unique per call, so that it is counted once.
    pub call_id: String,
    /// Who asked.
    pub caller: String,
    /// The model entry's name.
    pub model: String,
    /// The answer.
    pub message: Message,
    /// What it cost.
    pub usage: Option<UsageMetadata>,
    /// How long it took.
    pub latency_ms: u64,
}

impl ModelCallRecord {
    /// Whether the framework asked, beside the conversation.
    pub fn is_aside(&self) -> bool {
        is_aside(&self.caller)
    }
}

/// Whether this caller is the framework itself.
pub(crate) fn is_aside(caller: &str) -> bool {
    caller.starts_with("middleware:")
}

/// A tool call that ended.
#[derive(Debug, Clone)]
pub struct ToolCallRecord {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Its result.
    pub message: Message,
    /// How long it took.
    pub latency_ms: u64,
}

/// How an agent stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// Done, or stopped on the way.
    pub kind: StopKind,
    /// A guard's reason for stopping early, such as `loop_capped`.
    pub stop_reason: Option<String>,
}

/// Whether anything is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StopKind {
    /// Nothing is left to do.
    Completed,
    /// Stopped before or after a named node, as the run asked.
    Breakpoint,
    /// Waiting for answers: `[{"value": .., "id": ..}]`.
    Question(Vec<Value>),
}
