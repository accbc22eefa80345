//! A validated flow in the form that runs need: indices instead of ids, parsed conditions, typed
//! settings and bound agents. Made once per version of a flow; a run compiles nothing.

mod agent;
mod flow;
mod node;

pub use agent::{AssetPrompt, AssetText, EffectiveAgent};
pub use flow::{CompiledFlow, ControlEdge, DataEdge, FlowLimits};
pub use node::{
    AgentNode, CompiledNode, Driver, FinishNode, HumanNode, Join, LoaderKind, LoaderNode, LoopNode,
    MergeMode, NodeIndex, OnError, OutputFormat, PlanLoopNode, PromptNode, RetryPolicy,
    SubflowNode,
};
