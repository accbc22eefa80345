//! Values that one node published in its latest visit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapter::{TurnMode, Usage};

/// Output of the latest visit of a node that produces text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeOutput {
    /// Final text, a JSON string: the value of the ports `out` and `result`.
    pub(super) text: Value,
    /// Structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// Mode of the turn; absent if no agent made the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_mode: Option<TurnMode>,
    /// Tokens and cost.
    #[serde(default)]
    pub usage: Usage,
    /// Id of the streamed message that contains the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Number of the commit in the run, from 1. The machine assigns it.
    #[serde(default)]
    pub sequence: u64,
}

impl NodeOutput {
    /// Creates an output of text only.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Value::String(text.into()),
            structured: None,
            turn_mode: None,
            usage: Usage::default(),
            message_id: None,
            sequence: 0,
        }
    }

    /// Returns the final text.
    pub fn as_text(&self) -> &str {
        self.text.as_str().unwrap_or_default()
    }

    pub(super) fn text_value(&self) -> &Value {
        &self.text
    }

    fn bytes(&self) -> usize {
        size_of_value(&self.text) + self.structured.as_ref().map_or(0, size_of_value)
    }
}

/// Position of a loop node in its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopState {
    /// Event that the loop waits for.
    pub stage: LoopStage,
    /// Current round, from 1; 0 before the first.
    pub round: u64,
    /// Number of the last commit before the round began.
    pub since: u64,
}

/// Event that a loop waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoopStage {
    /// The plan.
    Plan,
    /// The work of the round.
    Execute,
    /// The evaluation of the round.
    Evaluate,
}

/// Values that one node published.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NodeData {
    pub(super) visits: u64,
    pub(super) output: Option<NodeOutput>,
    pub(super) ports: BTreeMap<String, Value>,
    pub(super) loop_state: Option<LoopState>,
}

impl NodeData {
    pub(super) fn port(&self, port: &str) -> Option<&Value> {
        self.ports.get(port).or_else(|| match port {
            "out" | "result" => self.output.as_ref().map(NodeOutput::text_value),
            _ => None,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.output.as_ref().map_or(0, NodeOutput::bytes) + size_of_ports(&self.ports)
    }
}

fn size_of_ports(ports: &BTreeMap<String, Value>) -> usize {
    ports
        .iter()
        .map(|(port, value)| port.len() + size_of_value(value))
        .sum()
}

/// Estimates the size of a value as JSON text, in bytes, without recursion.
pub(super) fn size_of_value(value: &Value) -> usize {
    if let Value::String(text) = value {
        return text.len() + 2;
    }
    let (mut bytes, mut rest) = (0, vec![value]);
    while let Some(value) = rest.pop() {
        bytes += match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                rest.extend(items);
                items.len() + 2
            }
            Value::Object(fields) => {
                rest.extend(fields.values());
                fields.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        };
    }
    bytes
}
