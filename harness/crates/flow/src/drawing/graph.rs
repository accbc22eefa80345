//! A flow as nodes and edges.

use std::collections::HashSet;

use serde::Serialize;

use crate::kinds::effective_kind;
use crate::schema::{Edge, Flow, Node};

/// Node before the first one.
pub const START: &str = "__start__";
/// Node after the last ones.
pub const END: &str = "__end__";

/// Drawing of a flow, in the form of LangGraph's graphs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drawing {
    /// [`START`], the nodes of the flow, [`END`].
    pub nodes: Vec<DrawnNode>,
    /// Edges in the order of the flow, and those from the start and to the end.
    pub edges: Vec<DrawnEdge>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawnNode {
    /// Id.
    pub id: String,
    /// `runnable` for nodes of the flow.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Name, kind and agent; absent for the start and the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<NodeData>,
}

/// Description of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeData {
    /// Label, else the id.
    pub name: String,
    /// Kind, as `family.variant`.
    pub kind: String,
    /// Agent that the node names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawnEdge {
    /// Node that it leaves.
    pub source: String,
    /// Node that it enters.
    pub target: String,
    /// Whether a condition or the decision of a node selects it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
    /// Label, else the condition, else the handle or port that it leaves.
    #[serde(rename = "data", skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it carries a value.
    #[serde(skip)]
    pub carries_data: bool,
}

impl Drawing {
    /// Draws a flow. Edges of unknown nodes are left out.
    pub fn of(flow: &Flow) -> Self {
        let graph = &flow.graph;
        let ids: HashSet<&str> = graph.nodes.iter().map(|n| n.node_id.as_str()).collect();
        let known =
            |edge: &&Edge| ids.contains(edge.source.as_str()) && ids.contains(edge.target.as_str());
        let mut edges = vec![plain(START, &graph.start_node_id)];
        edges.extend(graph.edges.iter().filter(known).map(drawn_edge));
        let left: HashSet<&str> = graph.edges.iter().map(|e| e.source.as_str()).collect();
        let last = graph
            .nodes
            .iter()
            .filter(|node| is_finish(node) || !left.contains(node.node_id.as_str()));
        edges.extend(last.map(|node| plain(&node.node_id, END)));
        let nodes = std::iter::once(bare(START))
            .chain(graph.nodes.iter().map(drawn_node))
            .chain([bare(END)])
            .collect();
        Self { nodes, edges }
    }
}

fn is_finish(node: &Node) -> bool {
    matches!(effective_kind(node), "control.finish" | "control.output")
}

fn bare(id: &str) -> DrawnNode {
    DrawnNode {
        id: id.to_owned(),
        kind: None,
        data: None,
    }
}

fn drawn_node(node: &Node) -> DrawnNode {
    DrawnNode {
        id: node.node_id.clone(),
        kind: Some("runnable"),
        data: Some(NodeData {
            name: node.label.as_ref().unwrap_or(&node.node_id).clone(),
            kind: effective_kind(node).to_owned(),
            agent_id: node.agent_ref.clone().or_else(|| node.agent_id.clone()),
        }),
    }
}

fn plain(source: &str, target: &str) -> DrawnEdge {
    DrawnEdge {
        source: source.to_owned(),
        target: target.to_owned(),
        conditional: false,
        label: None,
        carries_data: false,
    }
}

fn drawn_edge(edge: &Edge) -> DrawnEdge {
    let handle = edge.source_handle.as_ref().filter(|_| !edge.data_edge);
    let label = edge.label.as_ref().or(edge.condition.as_ref());
    DrawnEdge {
        source: edge.source.clone(),
        target: edge.target.clone(),
        conditional: edge.condition.is_some() || handle.is_some_and(|handle| handle != "out"),
        label: label.or(edge.source_handle.as_ref()).cloned(),
        carries_data: edge.data_edge,
    }
}
