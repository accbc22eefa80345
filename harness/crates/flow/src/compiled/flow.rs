//! A compiled flow.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::node::{CompiledNode, NodeIndex};
use crate::condition::Condition;
use crate::schema::{Budgets, Flow};

/// A validated flow, ready to run.
#[derive(Debug, Clone)]
pub struct CompiledFlow {
    /// Document.
    pub document: Arc<Flow>,
    /// Hash of the document's text and of the assets that it uses, as lower-case hex SHA-256.
    pub content_hash: String,
    /// Nodes in the order of the document.
    pub nodes: Vec<CompiledNode>,
    /// Index by node id.
    pub index: HashMap<Arc<str>, NodeIndex>,
    /// Node that a run starts with.
    pub start: NodeIndex,
    /// Control edges that leave each node, in the order of the document, without those of handle
    /// `error`.
    pub control: Vec<Vec<ControlEdge>>,
    /// Edges of handle `error` that leave each node.
    pub error_edges: Vec<Vec<ControlEdge>>,
    /// Data edges that enter each node.
    pub data: Vec<Vec<DataEdge>>,
    /// Forward control predecessors of each node: those that are not on a cycle through it.
    pub predecessors: Vec<Vec<NodeIndex>>,
    /// Limits of a run.
    pub limits: FlowLimits,
    /// `runtime.adapterConfig` by canonical kind.
    pub adapter_config: HashMap<String, Map<String, Value>>,
}

/// An edge that carries control.
#[derive(Debug, Clone)]
pub struct ControlEdge {
    /// Index in the document.
    pub index: usize,
    /// Node that it enters.
    pub target: NodeIndex,
    /// Handle that it leaves.
    pub handle: Option<Arc<str>>,
    /// Condition.
    pub condition: Option<Condition>,
}

/// An edge that carries a value.
#[derive(Debug, Clone)]
pub struct DataEdge {
    /// Index in the document.
    pub index: usize,
    /// Node that it leaves.
    pub source: NodeIndex,
    /// Output port.
    pub source_port: Arc<str>,
    /// Input port.
    pub target_port: Arc<str>,
}

/// Limits of a run.
#[derive(Debug, Clone, Default)]
pub struct FlowLimits {
    /// Nodes that run at once, at least 1.
    pub max_concurrency: usize,
    /// Budgets of the whole run.
    pub budget: Budgets,
    /// `true` if events of turns are stored.
    pub persist_events: bool,
}

impl CompiledFlow {
    /// Returns the index of a node.
    pub fn find(&self, node: &str) -> Option<NodeIndex> {
        self.index.get(node).copied()
    }
}
