//! Graph of a flow as data.

use serde::Serialize;

use crate::compiled::{CompiledFlow, Driver, NodeIndex};
use crate::schema::Edge;

/// Graph of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowGraph {
    /// Name of the flow.
    pub name: String,
    /// Node that a run starts with.
    pub start: String,
    /// Nodes that no control edge leaves.
    pub ends: Vec<String>,
    /// Nodes in the order of the document.
    pub nodes: Vec<GraphNode>,
    /// Edges in the order of the document.
    pub edges: Vec<GraphEdge>,
}

/// Node of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphNode {
    /// Id.
    pub id: String,
    /// Label, else the id.
    pub label: String,
    /// Kind.
    pub kind: String,
    /// Agent that executes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Flow that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<String>,
}

/// Edge of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GraphEdge {
    /// Node that it leaves.
    pub source: String,
    /// Node that it enters.
    pub target: String,
    /// Handle, condition or label, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `true` if control may leave by another edge.
    pub conditional: bool,
    /// `true` if it carries control.
    pub control: bool,
    /// `true` if it carries a value.
    pub data: bool,
}

/// Returns the graph of a flow.
pub fn graph(flow: &CompiledFlow) -> FlowGraph {
    let id = |node: NodeIndex| flow.nodes[node].id.to_string();
    let mut edges: Vec<(usize, GraphEdge)> = Vec::new();
    for (source, node) in flow.nodes.iter().enumerate() {
        let chooses = matches!(
            node.driver,
            Driver::Router | Driver::PlanLoop(_) | Driver::Loop(_) | Driver::Human(_)
        );
        let normal = flow.control[source].iter().map(|edge| (edge, chooses));
        let failing = flow.error_edges[source].iter().map(|edge| (edge, true));
        edges.extend(normal.chain(failing).map(|(edge, conditional)| {
            let edge_graph = GraphEdge {
                source: id(source),
                target: id(edge.target),
                label: label(&flow.document.graph.edges[edge.index], true),
                conditional: conditional || edge.condition.is_some(),
                control: true,
                data: false,
            };
            (edge.index, edge_graph)
        }));
    }
    for (target, data) in flow.data.iter().enumerate() {
        for edge in data {
            match edges.iter_mut().find(|(index, _)| *index == edge.index) {
                Some((_, drawn)) => drawn.data = true,
                None => edges.push((
                    edge.index,
                    GraphEdge {
                        source: id(edge.source),
                        target: id(target),
                        label: label(&flow.document.graph.edges[edge.index], false),
                        conditional: false,
                        control: false,
                        data: true,
                    },
                )),
            }
        }
    }
    edges.sort_by_key(|(index, _)| *index);
    FlowGraph {
        name: flow.document.meta.name.clone(),
        start: id(flow.start),
        ends: (0..flow.nodes.len())
            .filter(|&node| flow.control[node].is_empty())
            .map(id)
            .collect(),
        nodes: flow.nodes.iter().map(node_of).collect(),
        edges: edges.into_iter().map(|(_, edge)| edge).collect(),
    }
}

fn node_of(node: &crate::compiled::CompiledNode) -> GraphNode {
    let label = node
        .label
        .as_deref()
        .filter(|label| !label.trim().is_empty());
    let (agent_id, flow_id) = match &node.driver {
        Driver::Agent(agent) => (Some(agent.agent.agent_id.clone()), None),
        Driver::Subflow(subflow) => (None, Some(subflow.flow_id.clone())),
        _ => (None, None),
    };
    GraphNode {
        id: node.id.to_string(),
        label: label.unwrap_or(&node.id).to_owned(),
        kind: node.kind.clone(),
        agent_id,
        flow_id,
    }
}

/// Returns the label of an edge: its own, else its handle or condition. The handle `out` says
/// nothing; a value has the input that it enters.
fn label(edge: &Edge, carries_control: bool) -> Option<String> {
    let written = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let handle = written(&edge.source_handle);
    written(&edge.label).or(if carries_control {
        handle
            .filter(|handle| handle != "out")
            .or_else(|| written(&edge.condition))
    } else {
        match (handle, written(&edge.target_handle)) {
            (Some(from), Some(to)) if from != to => Some(format!("{from} → {to}")),
            (from, to) => from.or(to),
        }
    })
}
