//! Migration of documents from format 1.0 to 2.0.

use super::node_kinds::{NodeKinds, effective_kind};
use crate::schema::{Flow, Port};

/// Versions of the document format that are read.
pub const SUPPORTED_VERSIONS: [&str; 2] = ["1.0", "2.0"];
/// Version that documents are migrated to.
pub const MIGRATED_VERSION: &str = "2.0";

/// Returns the document in format 2.0. Format 1.0 gains the kind and category of each node, and
/// default ports where a node declares none on both sides. Other versions are not changed.
///
/// ```
/// use deerflow_flow::kinds::migrate;
/// use deerflow_flow::schema::Document;
///
/// let old = Document::read(
///     "meta: {schemaVersion: 1.0, name: old}
/// agents: {agentDefs: []}
/// graph: {nodes: [{nodeId: end, nodeType: output}], edges: [], startNodeId: end}",
/// ).unwrap();
/// let node = &migrate(old.flow).graph.nodes[0];
/// assert_eq!(node.node_kind.as_deref(), Some("control.output"));
/// assert_eq!(node.input_ports[0].port_id, "in");
/// ```
#[must_use]
pub fn migrate(mut flow: Flow) -> Flow {
    if flow.meta.schema_version != "1.0" {
        return flow;
    }
    let ports: Vec<[Vec<Port>; 2]> = {
        let kinds = NodeKinds::of(&flow);
        let of = |node| {
            [
                kinds.inputs(node).list.into_owned(),
                kinds.outputs(node).list.into_owned(),
            ]
        };
        flow.graph.nodes.iter().map(of).collect()
    };
    for (node, [inputs, outputs]) in flow.graph.nodes.iter_mut().zip(ports) {
        let kind = effective_kind(node).to_owned();
        if node.category.is_none() {
            node.category = Some(category(&kind));
        }
        if node.input_ports.is_empty() && node.output_ports.is_empty() {
            node.input_ports = inputs;
            node.output_ports = outputs;
        }
        node.node_kind = Some(kind);
    }
    MIGRATED_VERSION.clone_into(&mut flow.meta.schema_version);
    flow
}

/// Returns the family of a kind with a capital letter.
fn category(kind: &str) -> String {
    let family = kind.split('.').next().unwrap_or(kind);
    let mut chars = family.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
