//! An agent as a drawing: its nodes and the ways between them.

/// A node of a drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// Its name; runs can be stopped at it.
    pub name: String,
    /// The tools it can call.
    pub tools: Vec<String>,
}

/// A way from one node to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEdge {
    /// The node before, or [`AgentGraph::START`].
    pub source: String,
    /// The node after, or [`AgentGraph::END`].
    pub target: String,
    /// Whether the state decides if it is taken.
    pub conditional: bool,
}

impl GraphEdge {
    /// The way that is always taken.
    pub fn always(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            target: target.into(),
            conditional: false,
        }
    }

    /// A way that may be taken.
    pub fn sometimes(source: impl Into<String>, target: impl Into<String>) -> Self {
        Self {
            conditional: true,
            ..Self::always(source, target)
        }
    }
}

/// A drawing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentGraph {
    /// The nodes, without those at the beginning and the end.
    pub nodes: Vec<GraphNode>,
    /// The ways between them.
    pub edges: Vec<GraphEdge>,
}

impl AgentGraph {
    /// Where every run begins.
    pub const START: &'static str = "__start__";
    /// Where every run ends.
    pub const END: &'static str = "__end__";

    /// Nodes that follow one another.
    pub fn chain(names: Vec<String>) -> Self {
        let stops = std::iter::once(Self::START).chain(names.iter().map(String::as_str));
        let edges = stops
            .zip(names.iter().map(String::as_str).chain([Self::END]))
            .map(|(from, to)| GraphEdge::always(from, to))
            .collect();
        Self {
            edges,
            nodes: names
                .into_iter()
                .map(|name| GraphNode {
                    name,
                    tools: Vec::new(),
                })
                .collect(),
        }
    }
}
