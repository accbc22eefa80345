//! Tool calls of an AI message, and those with invalid arguments.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool call with parsed arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Name of the tool as the model wrote it.
    pub name: String,
    /// Arguments by name.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Id that pairs the call with its result.
    pub id: String,
    /// Always `tool_call`.
    #[serde(rename = "type", default = "tool_call_type")]
    pub kind: String,
}

fn tool_call_type() -> String {
    "tool_call".to_owned()
}

impl ToolCall {
    /// Creates a call of `name` with `args`.
    pub fn new(id: impl Into<String>, name: impl Into<String>, args: Map<String, Value>) -> Self {
        Self {
            name: name.into(),
            args,
            id: id.into(),
            kind: tool_call_type(),
        }
    }
}

/// A tool call whose arguments were not a JSON object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvalidToolCall {
    /// Name of the tool, if there was one.
    #[serde(default)]
    pub name: Option<String>,
    /// Arguments as the model wrote them.
    #[serde(default)]
    pub args: Option<String>,
    /// Id that pairs the call with its result.
    #[serde(default)]
    pub id: Option<String>,
    /// Reason why the arguments were rejected.
    #[serde(default)]
    pub error: Option<String>,
    /// Always `invalid_tool_call`.
    #[serde(rename = "type", default = "invalid_tool_call_type")]
    pub kind: String,
}

pub(crate) fn invalid_tool_call_type() -> String {
    "invalid_tool_call".to_owned()
}
