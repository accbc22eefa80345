//! The graph of a document with resolved ids, ports and roles of edges.

use std::collections::HashMap;

use crate::compiled::NodeIndex;
use crate::condition::Condition;
use crate::finding::{Collector, Finding, FindingCode};
use crate::kinds::{KindDriver, NodeKinds, Ports, effective_kind};
use crate::schema::{Edge, Flow, Node};

/// Handle of a handled failure.
pub(crate) const ERROR_HANDLE: &str = "error";

/// Nodes and edges of a flow; those that are not valid are left out.
#[derive(Debug)]
pub(crate) struct Model<'d> {
    pub(crate) nodes: Vec<NodeModel<'d>>,
    pub(crate) index: HashMap<&'d str, NodeIndex>,
    pub(crate) start: Option<NodeIndex>,
    pub(crate) edges: Vec<EdgeModel<'d>>,
}

/// A node with its kind and effective ports.
#[derive(Debug)]
pub(crate) struct NodeModel<'d> {
    /// Index in the document.
    pub(crate) position: usize,
    pub(crate) node: &'d Node,
    pub(crate) kind: &'d str,
    /// Executor; `None` for an unknown kind.
    pub(crate) driver: Option<KindDriver>,
    pub(crate) inputs: Ports<'d>,
    pub(crate) outputs: Ports<'d>,
}

/// An edge whose ends exist.
#[derive(Debug)]
pub(crate) struct EdgeModel<'d> {
    /// Index in the document.
    pub(crate) position: usize,
    pub(crate) source: NodeIndex,
    pub(crate) target: NodeIndex,
    pub(crate) source_handle: Option<&'d str>,
    pub(crate) target_handle: Option<&'d str>,
    pub(crate) condition: Option<Condition>,
    /// `true` if it carries a value from an output port to an input port.
    pub(crate) carries_data: bool,
    pub(crate) control: ControlRole,
}

/// Role of an edge for control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlRole {
    /// Nothing.
    None,
    /// Carries control when its source completes.
    Normal,
    /// Carries control when its source fails.
    Error,
}

impl<'d> NodeModel<'d> {
    /// Returns the JSON pointer of a field of the node.
    pub(crate) fn pointer(&self, field: &str) -> String {
        format!("/graph/nodes/{}{field}", self.position)
    }

    /// Returns `true` if the edges of handle `error` are those of a failure.
    pub(crate) fn has_error_handle(&self) -> bool {
        self.driver != Some(KindDriver::Router)
            && !(self.driver == Some(KindDriver::Human)
                && self.outputs.find(ERROR_HANDLE).is_some())
    }
}

impl EdgeModel<'_> {
    /// Returns `true` if it carries control, be it of a failure.
    pub(crate) fn carries_control(&self) -> bool {
        self.control != ControlRole::None
    }
}

impl<'d> Model<'d> {
    /// Resolves the nodes of a flow. Of two nodes with one id the first counts.
    pub(crate) fn of_nodes(flow: &'d Flow, findings: &mut Collector) -> Self {
        let kinds = NodeKinds::of(flow);
        let mut nodes = Vec::with_capacity(flow.graph.nodes.len());
        let mut index = HashMap::with_capacity(flow.graph.nodes.len());
        for (position, node) in flow.graph.nodes.iter().enumerate() {
            if index.contains_key(node.node_id.as_str()) {
                let message = format!(
                    "the node id `{}` is used already; give each node an id of its own",
                    node.node_id
                );
                findings.add(
                    Finding::new(FindingCode::DuplicateNodeId, message)
                        .at(format!("/graph/nodes/{position}/nodeId"))
                        .node(&node.node_id),
                );
                continue;
            }
            index.insert(node.node_id.as_str(), nodes.len());
            let kind = effective_kind(node);
            nodes.push(NodeModel {
                position,
                node,
                kind,
                driver: KindDriver::of(kind),
                inputs: kinds.inputs(node),
                outputs: kinds.outputs(node),
            });
        }
        let start = index.get(flow.graph.start_node_id.as_str()).copied();
        if start.is_none() {
            let message = format!(
                "`startNodeId` is `{}`, which is the id of no node",
                flow.graph.start_node_id
            );
            findings.add(
                Finding::new(FindingCode::StartNodeNotFound, message).at("/graph/startNodeId"),
            );
        }
        Self {
            nodes,
            index,
            start,
            edges: Vec::with_capacity(flow.graph.edges.len()),
        }
    }

    /// Returns the targets of each node's control edges.
    pub(crate) fn control_targets(&self) -> Vec<Vec<NodeIndex>> {
        let mut targets = vec![Vec::new(); self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| edge.carries_control()) {
            targets[edge.source].push(edge.target);
        }
        targets
    }
}

/// Returns a handle of an edge; an empty one counts as absent.
pub(crate) fn handle(handle: Option<&String>) -> Option<&str> {
    handle
        .map(String::as_str)
        .filter(|handle| !handle.is_empty())
}

/// Returns the condition of an edge; a blank one counts as absent.
pub(crate) fn condition(edge: &Edge) -> Option<&str> {
    edge.condition
        .as_deref()
        .filter(|text| !text.trim().is_empty())
}
