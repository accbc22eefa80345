//! The document of a flow, as it is written in files. Names are camelCase; unknown fields are
//! retained in `extra`, so that reading and writing a document loses nothing.
//!
//! Fields hold what the document says. Methods apply the defaults.

mod agent_def;
mod document;
mod json_lines;
mod lines;
mod node;
mod port;
mod read;
pub(crate) mod shape;
mod strict_value;
mod syntax;
mod tables;
mod turn_mode;
mod write;

pub use agent_def::{
    AgentDef, Approval, Budgets, DelegationMode, MemoryPolicy, MemoryScope, ModelProfile,
    OutputKind, ReturnStrategy, SubagentPolicy, Timeouts, ToolPolicy,
};
pub use document::{Agents, Extensions, Flow, Graph, Layout, Meta, NodeBinding, RuntimeSettings};
pub use node::{CustomNodeSpec, Edge, Node, Param};
pub use port::{DataType, Port};
pub use read::Document;
pub(crate) use read::name_ends;
pub(crate) use syntax::yaml_options;
pub use syntax::{MAX_ALIASED_NODES, MAX_ANCHORS, MAX_BYTES, MAX_DEPTH, MAX_VALUES};
pub(crate) use tables::BUDGETS;
pub use tables::{MAX_AGENTS, MAX_EDGES, MAX_NODES};
pub use turn_mode::TurnMode;
pub use write::WriteError;

use serde_json::Value;

/// Returns the JSON Schema of flow documents, for editors.
pub fn json_schema() -> Value {
    shape::record_schema(&tables::FLOW)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
