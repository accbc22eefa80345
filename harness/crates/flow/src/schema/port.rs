//! Ports of nodes and their types.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Input or output of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Id, unique per side of the node.
    pub port_id: String,
    /// Type of its values.
    pub data_type: DataType,
    /// Label for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `true` if an input needs an edge; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Value of an input that no edge sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_value: Option<Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Type of a port's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataType {
    /// Text.
    String,
    /// Number.
    Number,
    /// True or false.
    Boolean,
    /// JSON object.
    Object,
    /// JSON list.
    Array,
    /// Any value.
    Any,
    /// Control only, no value.
    Flow,
    /// Text that directs an agent.
    Prompt,
    /// Loaded documents.
    Documents,
    /// Plan of an agent.
    Plan,
    /// Evaluation with `score`, `canComplete` and `reason`.
    Score,
    /// Result object.
    Artifact,
}

impl DataType {
    /// Returns the name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
            Self::Any => "any",
            Self::Flow => "flow",
            Self::Prompt => "prompt",
            Self::Documents => "documents",
            Self::Plan => "plan",
            Self::Score => "score",
            Self::Artifact => "artifact",
        }
    }

    /// Returns `true` if a value of this type may flow into a port of type `target`, in either
    /// direction of the pair.
    pub fn fits(self, target: Self) -> bool {
        const PAIRS: [(DataType, DataType); 6] = [
            (DataType::String, DataType::Prompt),
            (DataType::Object, DataType::Documents),
            (DataType::Array, DataType::Documents),
            (DataType::Array, DataType::Plan),
            (DataType::Object, DataType::Score),
            (DataType::Object, DataType::Artifact),
        ];
        self == target
            || self == Self::Any
            || target == Self::Any
            || PAIRS.contains(&(self, target))
            || PAIRS.contains(&(target, self))
    }
}
