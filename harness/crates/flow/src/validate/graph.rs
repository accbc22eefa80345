//! Checks of the graph as a whole.

use std::collections::{HashMap, HashSet};

use super::components::{components, reachable};
use super::model::{Model, NodeModel};
use crate::finding::{Collector, Finding, FindingCode, listed};
use crate::kinds::KindDriver;
use crate::schema::{DataType, Port};

/// Reports two ports of one id on a side of a node.
pub(crate) fn check_port_ids(model: &Model<'_>, findings: &mut Collector) {
    for node in &model.nodes {
        let sides = [
            ("inputPorts", &node.node.input_ports),
            ("outputPorts", &node.node.output_ports),
        ];
        for (side, ports) in sides {
            let mut seen = HashSet::new();
            for (index, port) in ports.iter().enumerate() {
                if !seen.insert(port.port_id.as_str()) {
                    let message =
                        format!("another port of this side has the id `{}`", port.port_id);
                    findings.add(
                        Finding::new(FindingCode::DuplicatePortId, message)
                            .at(node.pointer(&format!("/{side}/{index}/portId")))
                            .node(&node.node.node_id)
                            .handle(&port.port_id),
                    );
                }
            }
        }
    }
}

/// Reports plan loops that could not leave by a handle.
pub(crate) fn check_loop_handles(model: &Model<'_>, findings: &mut Collector) {
    for (index, node) in model.nodes.iter().enumerate() {
        if node.driver != Some(KindDriver::PlanLoop) {
            continue;
        }
        for handle in ["execute", "done"] {
            let leaves = model.edges.iter().any(|edge| {
                let by = edge.source_handle;
                edge.source == index
                    && edge.carries_control()
                    && (by.is_none() || by == Some(handle))
            });
            if !leaves {
                let id = &node.node.node_id;
                let message = format!("no edge leaves handle `{handle}` of `{id}`; add one");
                findings.add(
                    Finding::new(FindingCode::MissingHandleEdge, message)
                        .at(node.pointer(""))
                        .node(id)
                        .handle(handle),
                );
            }
        }
    }
}

/// Reports nodes that no control edge leads to.
pub(crate) fn check_reachable(model: &Model<'_>, findings: &mut Collector) {
    let Some(start) = model.start else { return };
    let found = reachable(&model.control_targets(), start, |_| false);
    for (index, node) in model.nodes.iter().enumerate() {
        if index != start && !found[index] {
            let id = &node.node.node_id;
            let message = format!("no control edge leads from the start to `{id}`; it never runs");
            findings.add(
                Finding::new(FindingCode::UnreachableNode, message)
                    .at(node.pointer(""))
                    .node(id),
            );
        }
    }
}

/// Reports required inputs that no edge enters.
pub(crate) fn check_required_inputs(model: &Model<'_>, findings: &mut Collector) {
    let mut named = HashSet::new();
    let mut has_control = vec![false; model.nodes.len()];
    for edge in &model.edges {
        if let Some(handle) = edge.target_handle {
            named.insert((edge.target, handle));
        }
        has_control[edge.target] |= edge.carries_control();
    }
    for (index, node) in model.nodes.iter().enumerate() {
        if Some(index) == model.start {
            continue;
        }
        for port in node.inputs.list.iter().filter(|port| is_demanding(port)) {
            let takes_control = port.data_type == DataType::Flow || port.port_id == "in";
            if named.contains(&(index, port.port_id.as_str()))
                || takes_control && has_control[index]
            {
                continue;
            }
            let id = &node.node.node_id;
            let message = format!(
                "no edge enters the required input `{}` of `{id}`; add one, a `defaultValue` or \
                 `required: false`",
                port.port_id
            );
            findings.add(
                Finding::new(FindingCode::RequiredInputDisconnected, message)
                    .at(node.pointer(""))
                    .node(id)
                    .handle(&port.port_id),
            );
        }
    }
}

fn is_demanding(port: &Port) -> bool {
    port.required.unwrap_or(true) && port.default_value.is_none()
}

/// Reports cycles without a node that limits their rounds or asks a person.
pub(crate) fn check_cycles(model: &Model<'_>, findings: &mut Collector) {
    // A person who answers in each round ends a cycle as well.
    let limits = |node: &NodeModel<'_>| {
        node.driver
            .is_some_and(|driver| driver.limits_cycles() || driver == KindDriver::Human)
    };
    let mut targets = model.control_targets();
    for (node, targets) in model.nodes.iter().zip(&mut targets) {
        if limits(node) {
            targets.clear();
        }
    }
    let mut cycles: HashMap<usize, Vec<&NodeModel<'_>>> = HashMap::new();
    for (node, component) in model.nodes.iter().zip(components(&targets)) {
        cycles.entry(component).or_default().push(node);
    }
    let mut cycles: Vec<_> = cycles
        .into_values()
        .filter(|nodes| nodes.len() > 1)
        .collect();
    cycles.sort_by_key(|nodes| nodes[0].position);
    for nodes in cycles {
        let names = listed(nodes.iter().map(|node| node.node.node_id.as_str()));
        let message = format!(
            "the nodes {names} form a cycle that only the limit of steps ends; put a \
             `control.loop` or `control.plan-loop` into it"
        );
        findings.add(
            Finding::new(FindingCode::CycleWithoutLimit, message)
                .at(nodes[0].pointer(""))
                .node(&nodes[0].node.node_id),
        );
    }
}
