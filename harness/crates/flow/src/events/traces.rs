//! Values that data edges carried between nodes, from the inputs of their visits.

use super::node_state::{NodeState, NodeTrace};
use crate::compiled::{CompiledFlow, NodeIndex};

/// A value that an edge carried, with the positions of its nodes.
pub(super) struct TracedValue {
    pub(super) source: NodeIndex,
    pub(super) target: NodeIndex,
    pub(super) trace: NodeTrace,
}

/// Returns the values that the latest visits received. `states` has the nodes in the order of the
/// flow.
pub(super) fn traced_values(
    flow: &CompiledFlow,
    states: &[(String, NodeState)],
) -> Vec<TracedValue> {
    let mut traced = Vec::new();
    for (target, (id, state)) in states.iter().enumerate() {
        for edge in &flow.data[target] {
            let Some(value) = state.input.inputs.get(&*edge.target_port) else {
                continue;
            };
            traced.push(TracedValue {
                source: edge.source,
                target,
                trace: NodeTrace {
                    trace_id: format!("edge-{}-visit-{}", edge.index, state.visit),
                    source_node_id: flow.nodes[edge.source].id.to_string(),
                    source_port_id: edge.source_port.to_string(),
                    target_node_id: id.clone(),
                    target_port_id: edge.target_port.to_string(),
                    value: value.clone(),
                    timestamp: state.times.started_at,
                },
            });
        }
    }
    traced
}
