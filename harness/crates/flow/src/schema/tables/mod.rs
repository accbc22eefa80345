//! Description of a flow document: one table per object.

mod agent;
mod base;
mod document;
mod graph;

pub(crate) use agent::BUDGETS;
pub use agent::MAX_AGENTS;
pub(crate) use document::{FLOW, FLOW_SHAPE};
pub use graph::{MAX_EDGES, MAX_NODES};
