//! Checks of edges, and the role of each.

use std::collections::HashSet;

use super::model::{ControlRole, ERROR_HANDLE, EdgeModel, Model, NodeModel, condition, handle};
use crate::compiled::NodeIndex;
use crate::condition::Condition;
use crate::finding::{Collector, Finding, FindingCode, listed};
use crate::kinds::Ports;
use crate::schema::{DataType, Edge, Flow};

/// Ends and handles of an edge.
type EdgeKey<'d> = (NodeIndex, NodeIndex, Option<&'d str>, Option<&'d str>);

/// Adds the valid edges of a flow to the model.
pub(crate) fn add_edges<'d>(model: &mut Model<'d>, flow: &'d Flow, findings: &mut Collector) {
    let mut seen = Seen::default();
    for (position, edge) in flow.graph.edges.iter().enumerate() {
        if let Some(checked) = check_edge(model, position, edge, &mut seen, findings) {
            model.edges.push(checked);
        }
    }
    add_implicit_control(model, findings);
}

#[derive(Default)]
struct Seen<'d> {
    edges: HashSet<EdgeKey<'d>>,
    /// Input ports that a data edge enters.
    inputs: HashSet<(NodeIndex, &'d str)>,
}

fn check_edge<'d>(
    model: &Model<'d>,
    position: usize,
    edge: &'d Edge,
    seen: &mut Seen<'d>,
    findings: &mut Collector,
) -> Option<EdgeModel<'d>> {
    let add = |code, field: &str, message: String| {
        let path = format!("/graph/edges/{position}{field}");
        Finding::new(code, message).at(path).edge(position)
    };
    let source = model.index.get(edge.source.as_str()).copied();
    let target = model.index.get(edge.target.as_str()).copied();
    if source.is_none() {
        let message = format!("the source `{}` is the id of no node", edge.source);
        findings.add(add(FindingCode::EdgeSourceNotFound, "/source", message));
    }
    if target.is_none() {
        let message = format!("the target `{}` is the id of no node", edge.target);
        findings.add(add(FindingCode::EdgeTargetNotFound, "/target", message));
    }
    let (source, target) = (source?, target?);
    if source == target {
        let message = format!("the edge leaves and enters `{}`", edge.source);
        findings.add(add(FindingCode::SelfEdge, "", message).node(&edge.source));
        return None;
    }
    let (source_node, target_node) = (&model.nodes[source], &model.nodes[target]);
    let source_handle = handle(edge.source_handle.as_ref());
    let target_handle = handle(edge.target_handle.as_ref());
    let is_failure = source_handle == Some(ERROR_HANDLE) && source_node.has_error_handle();

    if let Some(handle) = source_handle.filter(|h| !is_failure && !source_node.outputs.accepts(h)) {
        let message = no_port("output", handle, source_node, &source_node.outputs);
        let finding = add(FindingCode::EdgePortNotFound, "/sourceHandle", message);
        findings.add(finding.node(&edge.source).handle(handle));
    }
    if let Some(handle) = target_handle.filter(|h| !target_node.inputs.accepts(h)) {
        let message = no_port("input", handle, target_node, &target_node.inputs);
        let finding = add(FindingCode::EdgePortNotFound, "/targetHandle", message);
        findings.add(finding.node(&edge.target).handle(handle));
    }

    let is_routing = source_handle.is_some_and(|handle| {
        source_node
            .driver
            .is_some_and(|d| d.is_routing_handle(handle))
    });
    let ports = source_handle.zip(target_handle);
    let carries_data = edge.data_edge && !is_routing && ports.is_some();
    if edge.data_edge && !is_routing && ports.is_none() {
        let message = "a data edge needs `sourceHandle` and `targetHandle`; without both it \
                       carries control and no value";
        findings.add(add(FindingCode::DataEdgeIncomplete, "", message.to_owned()));
    }
    let is_new = seen
        .edges
        .insert((source, target, source_handle, target_handle));
    if let Some((from, to)) = ports.filter(|_| carries_data) {
        let types = (
            output_type(source_node, from, is_failure),
            target_node.inputs.find(to).map(|port| port.data_type),
        );
        if let (Some(from_type), Some(to_type)) = types
            && !from_type.fits(to_type)
        {
            let message = format!(
                "output `{from}` of `{}` has type {}, which does not fit input `{to}` of `{}` of \
                 type {}",
                edge.source,
                from_type.as_str(),
                edge.target,
                to_type.as_str()
            );
            findings.add(add(FindingCode::PortTypeMismatch, "", message));
        }
        let is_value = types.1 != Some(DataType::Flow);
        if is_new && is_value && !seen.inputs.insert((target, to)) {
            let message = format!(
                "another data edge enters input `{to}` of `{}`; give each source an input of its \
                 own",
                edge.target
            );
            let finding = add(FindingCode::MultipleDataSources, "", message);
            findings.add(finding.node(&edge.target).handle(to));
        }
    }
    if !is_new {
        let message = format!(
            "another edge leads from `{}` to `{}` with the same handles; remove one",
            edge.source, edge.target
        );
        findings.add(add(FindingCode::DuplicateEdge, "", message));
    }
    let condition = match condition(edge).map(Condition::parse).transpose() {
        Ok(condition) => condition,
        Err(error) => {
            let message = format!("the condition is not valid {error}");
            findings.add(add(FindingCode::InvalidCondition, "/condition", message));
            None
        }
    };
    Some(EdgeModel {
        position,
        source,
        target,
        source_handle,
        target_handle,
        condition,
        carries_data,
        control: match (carries_data, is_failure) {
            (true, _) => ControlRole::None,
            (false, true) => ControlRole::Error,
            (false, false) => ControlRole::Normal,
        },
    })
}

fn output_type(node: &NodeModel<'_>, handle: &str, is_failure: bool) -> Option<DataType> {
    let declared = node.outputs.find(handle).map(|port| port.data_type);
    declared.or(is_failure.then_some(DataType::Object))
}

fn no_port(side: &str, handle: &str, node: &NodeModel<'_>, ports: &Ports<'_>) -> String {
    let known = if ports.list.is_empty() {
        format!("it has no {side}s")
    } else {
        let names = listed(ports.list.iter().map(|port| port.port_id.as_str()));
        format!("its {side}s are {names}")
    };
    format!("`{}` has no {side} `{handle}`; {known}", node.node.node_id)
}

/// Lets data edges of a node carry control if nothing else does, separately for success and for
/// failure.
fn add_implicit_control(model: &mut Model<'_>, findings: &mut Collector) {
    let mut has_role = vec![[false; 2]; model.nodes.len()];
    for edge in &model.edges {
        match edge.control {
            ControlRole::Normal => has_role[edge.source][0] = true,
            ControlRole::Error => has_role[edge.source][1] = true,
            ControlRole::None => {}
        }
    }
    for edge in model.edges.iter_mut().filter(|edge| edge.carries_data) {
        let source = &model.nodes[edge.source];
        let is_failure = edge.source_handle == Some(ERROR_HANDLE) && source.has_error_handle();
        if has_role[edge.source][usize::from(is_failure)] {
            continue;
        }
        edge.control = if is_failure {
            ControlRole::Error
        } else {
            ControlRole::Normal
        };
        let id = &source.node.node_id;
        let message = format!(
            "`{id}` has no control edge, so that this data edge carries control, too; add an edge \
             with `dataEdge: false` to state it"
        );
        findings.add(
            Finding::new(FindingCode::ImplicitControlEdge, message)
                .edge(edge.position)
                .node(id),
        );
    }
}
