//! The top level of a flow document.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::agent_def::{AgentDef, Budgets};
use super::node::{CustomNodeSpec, Edge, Node};

/// A flow document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Flow {
    /// Marks the file as a flow; has no other meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agentsflow: Option<bool>,
    /// Name and version.
    pub meta: Meta,
    /// Agents that nodes name.
    pub agents: Agents,
    /// Nodes and edges.
    pub graph: Graph,
    /// Limits of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeSettings>,
    /// Drawing; never read by a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Node kinds of this flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Extensions>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Name and version of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Version of the document format: "1.0" or "2.0".
    pub schema_version: String,
    /// Name, not empty.
    pub name: String,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version that the author gives; "0.1.0" if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Agents of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agents {
    /// Definitions, each with a unique `agentId`.
    pub agent_defs: Vec<AgentDef>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Graph of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Graph {
    /// At least one node.
    pub nodes: Vec<Node>,
    /// Edges in the order in which routing examines them.
    pub edges: Vec<Edge>,
    /// Node that a run starts with.
    pub start_node_id: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Limits of a run of the flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSettings {
    /// Nodes that run at once; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Time limit of a turn in milliseconds, for agents without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_turn_timeout_ms: Option<u64>,
    /// `true` if events of turns are stored; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist_events: Option<bool>,
    /// Reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persist_memory_snapshots: Option<bool>,
    /// Budgets of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_budget: Option<Budgets>,
    /// Configuration of adapters by kind, below `adapterConfig` of an agent.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub adapter_config: IndexMap<String, Map<String, Value>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Drawing of a flow. Describes; a run never reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// Bindings as an editor displays them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_bindings: Vec<NodeBinding>,
    /// Positions, viewport and unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Description of a node's binding for editors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeBinding {
    /// Node.
    pub node_id: String,
    /// Agent that the editor displays.
    pub agent_id: String,
    /// Reserved: never merged into a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Map<String, Value>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Extensions of the document format.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extensions {
    /// Shapes of node kinds; they replace built-in ones of the same kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom_node_specs: Vec<CustomNodeSpec>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
