//! Graph of an agent: its nodes and edges.

use serde_json::{Map, Value};

/// Node of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphNode {
    /// Name of the node; runs can be interrupted at it.
    pub name: String,
    /// Names of the tools that the node can call.
    pub tools: Vec<String>,
    /// Facts for clients that draw the graph, such as the kind of the node.
    pub data: Map<String, Value>,
    /// Name of the assistant whose graph runs inside of the node.
    pub inner: Option<String>,
}

impl GraphNode {
    /// Creates a node without tools.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// Edge between two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEdge {
    /// Source node, or [`AgentGraph::START`].
    pub source: String,
    /// Target node, or [`AgentGraph::END`].
    pub target: String,
    /// `true` if the state decides whether the edge is taken.
    pub conditional: bool,
}

impl GraphEdge {
    /// Creates an unconditional edge.
    pub fn always(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            conditional: false,
        }
    }

    /// Creates a conditional edge.
    pub fn sometimes(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            conditional: true,
            ..Self::always(source, target)
        }
    }
}

/// Graph of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentGraph {
    /// Nodes, without start and end.
    pub nodes: Vec<GraphNode>,
    /// Edges between the nodes.
    pub edges: Vec<GraphEdge>,
}

impl AgentGraph {
    /// Start of every run.
    pub const START: &'static str = "__start__";
    /// End of every run.
    pub const END: &'static str = "__end__";

    /// Creates a graph of nodes that follow one another.
    pub fn chain(names: Vec<String>) -> Self {
        let stops = std::iter::once(Self::START).chain(names.iter().map(String::as_str));
        let edges = stops
            .zip(names.iter().map(String::as_str).chain([Self::END]))
            .map(|(from, to)| GraphEdge::always(from, to))
            .collect();
        Self {
            edges,
            nodes: names.into_iter().map(GraphNode::new).collect(),
        }
    }
}
