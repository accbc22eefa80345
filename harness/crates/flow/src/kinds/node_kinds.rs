//! The kinds of one flow: the built-in ones and those that the flow adds.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::built_in::{KindDriver, output};
use super::settings::MAX_OPTIONS;
use crate::schema::{CustomNodeSpec, DataType, Flow, Node, Port};

/// Kinds of a flow.
#[derive(Debug, Clone)]
pub struct NodeKinds<'f> {
    custom: HashMap<&'f str, &'f CustomNodeSpec>,
}

/// Ports of one side of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Ports<'f> {
    /// Ports in the order of the document or of the kind.
    pub list: Cow<'f, [Port]>,
    /// `true` if edges may name other handles as well.
    pub free: bool,
}

impl Ports<'_> {
    /// Returns the port with this id.
    pub fn find(&self, id: &str) -> Option<&Port> {
        self.list.iter().find(|port| port.port_id == id)
    }

    /// Returns `true` if an edge may name this handle.
    pub fn accepts(&self, handle: &str) -> bool {
        self.free || self.find(handle).is_some()
    }
}

impl<'f> NodeKinds<'f> {
    /// Collects the kinds of a flow. Of two custom kinds with one name the first counts.
    pub fn of(flow: &'f Flow) -> Self {
        let mut custom = HashMap::new();
        let specs = flow.extensions.iter().flat_map(|e| &e.custom_node_specs);
        for spec in specs {
            custom.entry(spec.kind.as_str()).or_insert(spec);
        }
        Self { custom }
    }

    /// Returns the effective inputs: those of the node, else of the custom kind, else of the
    /// built-in kind.
    pub fn inputs(&self, node: &'f Node) -> Ports<'f> {
        if !node.input_ports.is_empty() {
            return fixed(&node.input_ports);
        }
        let kind = effective_kind(node);
        match (self.custom.get(kind), KindDriver::of(kind)) {
            (Some(spec), _) => fixed(&spec.input_ports),
            (None, Some(driver)) => fixed(driver.inputs()),
            (None, None) => FREE,
        }
    }

    /// Returns the effective outputs, likewise.
    pub fn outputs(&self, node: &'f Node) -> Ports<'f> {
        if !node.output_ports.is_empty() {
            return fixed(&node.output_ports);
        }
        let kind = effective_kind(node);
        match (self.custom.get(kind), KindDriver::of(kind)) {
            (Some(spec), _) => fixed(&spec.output_ports),
            (None, Some(KindDriver::Router) | None) => FREE,
            (None, Some(KindDriver::Human)) => Ports {
                list: Cow::Owned(human_outputs(node)),
                free: false,
            },
            (None, Some(driver)) => fixed(driver.outputs()),
        }
    }
}

const FREE: Ports<'static> = Ports {
    list: Cow::Borrowed(&[]),
    free: true,
};

fn fixed(ports: &[Port]) -> Ports<'_> {
    Ports {
        list: Cow::Borrowed(ports),
        free: false,
    }
}

/// Returns a port for each option, and the ports that each human node has.
fn human_outputs(node: &Node) -> Vec<Port> {
    let options = node.config.get("options").and_then(Value::as_array);
    let mut ports = KindDriver::Human.outputs().to_vec();
    let options = options.into_iter().flatten().take(MAX_OPTIONS);
    for option in options.filter_map(Value::as_str) {
        if ports.iter().all(|port| port.port_id != option) {
            ports.push(output((option, DataType::Flow)));
        }
    }
    ports
}

/// Returns the kind of a node: `nodeKind`, else what `nodeType` stands for, else `agent.generic`.
pub fn effective_kind(node: &Node) -> &str {
    if let Some(kind) = &node.node_kind {
        return kind;
    }
    match node.node_type.as_deref() {
        Some("router") => "router.generic",
        Some("input") => "loader.input",
        Some("output") => "control.output",
        Some("loop") => "control.loop",
        Some("parallel") => "control.parallel",
        _ => "agent.generic",
    }
}
