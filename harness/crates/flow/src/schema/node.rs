//! Nodes, edges and custom node kinds.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::port::Port;

/// A node of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Id, unique in the flow.
    pub node_id: String,
    /// Kind in format 1.0; `nodeKind` takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_type: Option<String>,
    /// Kind, as `family.variant`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_kind: Option<String>,
    /// Label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Agent definition that executes the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Agent asset that executes the node; takes precedence over `agentId`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ref: Option<String>,
    /// Path that an editor displays; never opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_md_path: Option<String>,
    /// Settings of the kind.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Inputs; those of the kind if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_ports: Vec<Port>,
    /// Outputs; those of the kind if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_ports: Vec<Port>,
    /// Form fields of an editor; never read by a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Group in a palette.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// An edge of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Node that it leaves.
    pub source: String,
    /// Node that it enters.
    pub target: String,
    /// Output port or routing handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_handle: Option<String>,
    /// Input port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_handle: Option<String>,
    /// Label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Condition in the language of [`crate::condition`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `true` if it carries a value; false if absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_edge: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Form field of an editor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Param {
    /// Id.
    pub param_id: String,
    /// Type of the form field.
    pub param_type: String,
    /// Other fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Shape of a node kind that a flow adds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomNodeSpec {
    /// Kind, as `family.variant`.
    pub kind: String,
    /// Label for people.
    pub label: String,
    /// Group in a palette.
    pub category: String,
    /// Description for people.
    pub description: String,
    /// Icon of an editor.
    pub icon: String,
    /// Inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub input_ports: Vec<Port>,
    /// Outputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_ports: Vec<Port>,
    /// Other fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
