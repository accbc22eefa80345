//! Drawing of a flow: its graph as data and as Mermaid text.

mod graph;
mod mermaid;

pub use graph::{FlowGraph, GraphEdge, GraphNode, graph};
pub use mermaid::mermaid;

#[cfg(test)]
#[path = "drawing_tests.rs"]
mod tests;
