//! Interface between the runtime and agents: an agent takes a state and an input, and emits events
//! until it completes.

mod assistant;
mod call_log;
mod event;
mod graph;
mod input;
mod live_output;
mod middleware_action;
mod nested;
mod node_write;
mod pin;
mod port;
mod resolver;
mod run_queue;
mod schema_part;
mod subagent;
mod task;
mod tool_ledger;

pub use assistant::{AssistantDetails, AssistantInfo, AssistantKind, UnknownAssistant};
pub use call_log::CallLog;
pub(crate) use call_log::PendingCallEntry;
pub use event::{
    AgentEvent, AgentOutcome, MessageMeta, ModelCallRecord, StepEvent, StopKind, ToolCallRecord,
};
pub(crate) use event::{is_auxiliary, is_flow_node};
pub use graph::{AgentGraph, GraphEdge, GraphNode};
pub use input::{InputError, known_channels};
pub use live_output::{LiveOutput, OutputStream};
pub use middleware_action::MiddlewareAction;
pub use nested::{NestedCall, NestedListener, NestedOutcome, NestedQuestion, run_nested};
pub use node_write::{NodeWrite, NodeWritten};
pub use pin::AssistantPin;
pub use port::{
    Agent, AgentError, AgentInput, AgentStart, AgentStream, EventReceiver, EventSink, InputFacts,
    RunContext,
};
pub use resolver::AgentResolver;
pub use run_queue::QueueReceiver;
pub use schema_part::SchemaPart;
pub use subagent::{SubagentEvent, SubagentStatus, SubagentUpdate, TokenCount};
pub use task::{Task, TaskEnd, TaskInput, path_of};
pub use tool_ledger::{CallEntry, CallProgress, ToolLedger};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::agent::SubagentUpdate as SubagentNews;
