//! Events that an agent emits.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::live_output::LiveOutput;
use super::middleware_action::MiddlewareAction;
use super::subagent::SubagentEvent;
use super::task::{Task, TaskEnd, TaskInput};
use crate::checkpoint::PendingTask;
use crate::definition::EventContent;
use crate::user_memory::MemoryUpdate;
use deerflow_core::messages::{Message, MessageChunk, UsageMetadata};
use deerflow_core::state::{StateUpdate, ThreadState};

/// One event of an agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AgentEvent {
    /// A super-step finished: the state after it, and the pending nodes.
    Step(StepEvent),
    /// A fragment of a model's answer.
    Token(Box<MessageChunk>, Arc<MessageMeta>),
    /// A whole message that was added to the state without tokens.
    Message(Message, Arc<MessageMeta>),
    /// A payload for `custom` viewers.
    Custom(Value),
    /// A payload for `custom` viewers that describes the progress of a node. The journal has it as
    /// an object, with long texts cut, soon after it happens.
    NodeEvent(EventContent),
    /// A payload for `custom` viewers that the journal does not record.
    Unrecorded(EventContent),
    /// Output that a tool call prints while it runs, for `custom` viewers.
    LiveOutput(Box<LiveOutput>),
    /// An update of a subagent that a call started.
    Subagent(Box<SubagentEvent>),
    /// A task started: one execution of a node.
    TaskStart(Arc<Task>, TaskInput),
    /// A task ended.
    TaskEnd(Arc<Task>, TaskEnd),
    /// An event of an agent inside a call, with the call's `node:task id`.
    Nested(Arc<str>, Box<AgentEvent>),
    /// A model was called; for the journal.
    ModelRequest {
        /// Caller: `lead_agent`, `subagent:x`, `middleware:x`.
        caller: String,
        /// Name of the model entry.
        model: String,
        /// Number of messages sent.
        message_count: usize,
        /// Id that the answer will have.
        message_id: String,
    },
    /// Memories of the user were added to a model request; for the journal.
    MemoryShown {
        /// SHA-256 of the text, in hex.
        content_sha256: Arc<str>,
    },
    /// Pending update of a user memory from the thread. The next commit of the run registers it.
    MemoryUpdate(Box<MemoryUpdate>),
    /// A middleware rejected a call, suspended it or removed it from an answer; for the journal.
    MiddlewareAction(Box<MiddlewareAction>),
    /// A model call completed; for the journal and the token count.
    ModelCall(ModelCallRecord),
    /// A model call failed permanently; for the journal.
    ModelError {
        /// Caller of the model.
        caller: String,
        /// Error text.
        error: String,
    },
    /// A tool call started.
    ToolStart {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        name: String,
    },
    /// A tool call ended.
    ToolEnd(ToolCallRecord),
    /// The agent waits for user input without ending the run: idle limits are suspended until its
    /// next event.
    AwaitingInput,
    /// The agent completed; no event follows.
    Done(AgentOutcome),
}

/// A finished super-step.
#[derive(Debug, Clone)]
pub struct StepEvent {
    /// Node: `model`, `tools`, `TitleMiddleware.after_model`, ...
    pub node: String,
    /// Update that the node wrote; `None` if there is none.
    pub update: Option<StateUpdate>,
    /// State after the step.
    pub state: Arc<ThreadState>,
    /// Tasks that are pending after the step.
    pub next: Vec<PendingTask>,
    /// State of the agent's state machine, from which another process can resume. Ignored if no task
    /// is pending.
    pub machine: Value,
    /// Number of super-steps of the run so far.
    pub steps: u64,
    /// `true` if the step needs a checkpoint; intermediate steps need none.
    pub checkpoint: bool,
}

/// Origin of a message as clients see it, without configuration and secrets.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MessageMeta {
    /// Id of the thread.
    pub thread_id: String,
    /// Id of the run.
    pub run_id: String,
    /// Number of the super-step.
    pub langgraph_step: u64,
    /// Name of the node.
    pub langgraph_node: String,
    /// Triggers of the node.
    pub langgraph_triggers: Vec<String>,
    /// Path of the task within its step.
    pub langgraph_path: Vec<Value>,
    /// Namespace of the task, `node:task id`.
    pub langgraph_checkpoint_ns: String,
    /// Same value as `langgraph_checkpoint_ns`.
    pub checkpoint_ns: String,
    /// Model and agent facts: `model_name`, `agent_name`, `ls_provider`, ...
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MessageMeta {
    /// Names of all fields except those in [`MessageMeta::extra`], in their order.
    pub(crate) const FIELDS: [&str; 8] = [
        "thread_id",
        "run_id",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
        "checkpoint_ns",
    ];
}

/// A completed model call.
#[derive(Debug, Clone)]
pub struct ModelCallRecord {
    /// Unique per call, so that the call is counted once.
    pub call_id: String,
    /// Caller of the model.
    pub caller: String,
    /// Name of the model entry.
    pub model: String,
    /// Answer of the model.
    pub message: Message,
    /// Token usage.
    pub usage: Option<UsageMetadata>,
    /// Latency in milliseconds.
    pub latency_ms: u64,
}

impl ModelCallRecord {
    /// Reports whether this is an auxiliary call: made by the framework, outside of the
    /// conversation.
    pub fn is_auxiliary(&self) -> bool {
        is_auxiliary(&self.caller)
    }

    #[doc(hidden)]
    #[deprecated(note = "use `is_auxiliary`")]
    pub fn is_aside(&self) -> bool {
        self.is_auxiliary()
    }
}

/// Reports whether this caller is a node of a flow: its calls count, but only the result of the flow
/// is part of the conversation.
pub(crate) fn is_flow_node(caller: &str) -> bool {
    caller.starts_with("flow:")
}

/// Reports whether this caller is the framework itself.
pub(crate) fn is_auxiliary(caller: &str) -> bool {
    caller.starts_with("middleware:")
}

/// A completed tool call.
#[derive(Debug, Clone)]
pub struct ToolCallRecord {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub name: String,
    /// Result of the call.
    pub message: Message,
    /// Latency in milliseconds.
    pub latency_ms: u64,
}

/// Outcome of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOutcome {
    /// Completed, or stopped before that.
    pub kind: StopKind,
    /// Reason of a guard for an early stop, such as `loop_capped`.
    pub stop_reason: Option<String>,
}

/// Kind of stop of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StopKind {
    /// No task is pending.
    Completed,
    /// Stopped before or after a node, as the run requested.
    Breakpoint,
    /// Interrupted until the questions `[{"value": .., "id": ..}]` are answered.
    Question(Vec<Value>),
}
