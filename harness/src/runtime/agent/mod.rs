//! What the runtime knows of an agent: it takes a state and an input, and gives events until it is done.

mod call_log;
mod event;
mod graph;
mod live_output;
mod middleware_action;
mod port;
mod subagent;
mod task;

pub(crate) use call_log::CallLine;
pub use call_log::CallLog;
pub(crate) use event::is_aside;
pub use event::{
    AgentEvent, AgentOutcome, MessageMeta, ModelCallRecord, StepEvent, StopKind, ToolCallRecord,
};
pub use graph::{AgentGraph, GraphEdge, GraphNode};
pub use live_output::{LiveOutput, OutputStream};
pub use middleware_action::MiddlewareAction;
pub use port::{
    Agent, AgentError, AgentInput, AgentResolver, AgentStart, AgentStream, AssistantInfo,
    EventSink, InputFacts, RunContext, UnknownAssistant,
};
pub use subagent::{SubagentEvent, SubagentNews, SubagentStatus, TokenCount};
pub use task::{Task, TaskEnd, TaskInput, path_of};
