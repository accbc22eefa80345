//! Values that a visit receives: its input ports and the previous result.

use serde_json::{Map, Value};

use super::activation::Activation;
use super::data::RunData;
use crate::compiled::{CompiledFlow, Driver, MergeMode, NodeIndex};

/// Input of a visit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeInput {
    /// Values of input ports.
    pub ports: Map<String, Value>,
    /// Final texts of the nodes that activated the visit.
    pub previous: Vec<String>,
    /// Place of port `prompt` relative to the prompt of the run.
    pub merge: MergeMode,
}

/// Returns the input of a visit: the latest value of each source port, then the default values of
/// the ports that have none.
pub fn node_input(flow: &CompiledFlow, data: &RunData, visit: &Activation) -> NodeInput {
    let mut input = NodeInput::default();
    for edge in &flow.data[visit.node] {
        if let Some(value) = data.port(edge.source, &edge.source_port) {
            input
                .ports
                .insert(edge.target_port.to_string(), value.clone());
            if let (Driver::Prompt(prompt), "prompt") =
                (&flow.nodes[edge.source].driver, &*edge.target_port)
            {
                input.merge = prompt.merge;
            }
        }
    }
    for port in &flow.nodes[visit.node].inputs {
        if let Some(default) = &port.default_value
            && !input.ports.contains_key(&port.port_id)
        {
            input.ports.insert(port.port_id.clone(), default.clone());
        }
    }
    input.previous = previous_texts(data, &visit.carried);
    input
}

/// Returns the texts of nodes that are not blank.
pub(super) fn previous_texts(data: &RunData, nodes: &[NodeIndex]) -> Vec<String> {
    let texts = nodes
        .iter()
        .filter_map(|node| Some(data.output(*node)?.as_text()));
    texts
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .collect()
}
