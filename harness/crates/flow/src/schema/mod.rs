//! The document of a flow, as it is written in files. Names are camelCase; unknown fields are
//! retained in `extra`, so that reading and writing a document loses nothing.
//!
//! Fields hold what the document says. Methods apply the defaults.

mod agent_def;
mod document;
mod node;
mod port;

pub use agent_def::{
    AgentDef, Approval, Budgets, DelegationMode, MemoryPolicy, MemoryScope, ModelProfile,
    OutputKind, ReturnStrategy, SubagentPolicy, Timeouts, ToolPolicy,
};
pub use document::{Agents, Extensions, Flow, Graph, Layout, Meta, NodeBinding, RuntimeSettings};
pub use node::{CustomNodeSpec, Edge, Node, Param};
pub use port::{DataType, Port};
