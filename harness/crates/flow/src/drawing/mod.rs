//! Drawings of flows: nodes and edges as JSON, and text for Mermaid.

mod graph;
mod mermaid;

pub use graph::{Drawing, DrawnEdge, DrawnNode, END, NodeData, START};

#[cfg(test)]
#[path = "drawing_tests.rs"]
mod tests;
