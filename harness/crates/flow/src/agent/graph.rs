//! A flow as nodes and edges for clients that draw agents.

use deerflow_runtime::agent::{AgentGraph, GraphEdge, GraphNode};
use serde_json::{Map, Value};

use crate::compiled::{CompiledFlow, CompiledNode, Driver};

/// Prefix of the names of assistants that run flows.
const ASSISTANT: &str = "flow-";

/// Returns the nodes with their kinds, and the edges that carry control.
pub(super) fn graph(flow: &CompiledFlow) -> AgentGraph {
    let mut edges = vec![GraphEdge::always(
        AgentGraph::START,
        &*flow.nodes[flow.start].id,
    )];
    for (source, from) in flow.nodes.iter().enumerate() {
        let control = flow.control[source].iter();
        let targets: Vec<_> = control.chain(&flow.error_edges[source]).collect();
        for edge in &targets {
            edges.push(GraphEdge {
                source: from.id.to_string(),
                target: flow.nodes[edge.target].id.to_string(),
                conditional: edge.handle.is_some() || edge.condition.is_some(),
            });
        }
        if targets.is_empty() || matches!(from.driver, Driver::Finish(_)) {
            edges.push(GraphEdge::always(&*from.id, AgentGraph::END));
        }
    }
    AgentGraph {
        nodes: flow.nodes.iter().map(node_of).collect(),
        edges,
    }
}

fn node_of(node: &CompiledNode) -> GraphNode {
    let mut data = Map::from_iter([("kind".to_owned(), Value::from(node.kind.as_str()))]);
    if let Some(label) = &node.label {
        data.insert("label".to_owned(), label.as_str().into());
    }
    let mut inner = None;
    match &node.driver {
        Driver::Agent(agent) => {
            data.insert("agentId".to_owned(), agent.agent.agent_id.as_str().into());
        }
        Driver::Subflow(subflow) => {
            data.insert("flowId".to_owned(), subflow.flow_id.as_str().into());
            let slug = subflow.flow_id.strip_prefix(ASSISTANT);
            inner = Some(format!("{ASSISTANT}{}", slug.unwrap_or(&subflow.flow_id)));
        }
        _ => {}
    }
    GraphNode {
        data,
        inner,
        ..GraphNode::new(&*node.id)
    }
}
