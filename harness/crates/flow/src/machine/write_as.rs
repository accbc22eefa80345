//! External write that is attributed to a node: its values, and the edges that follow.

use serde_json::{Map, Value};

use super::activation::{Route, VisitStage};
use super::data::RunData;
use super::machine::FlowMachine;
use super::output::NodeOutput;
use super::resume::refused;
use super::routing;
use crate::adapter::FlowError;
use crate::compiled::{CompiledFlow, Driver, NodeIndex};

impl FlowMachine {
    /// Writes values to the ports of a node as if it had just run, and takes its edges. For nodes
    /// that produce text, `out` or `result` is the text. A node that chooses among handles takes the
    /// handle that is named as a port, or that the text of `out` or `response` names. Ports without
    /// a new value keep theirs. Other pending nodes stay pending.
    ///
    /// # Errors
    /// `resume_invalid`, if the flow has no such node or no such port, or if no edge fits;
    /// `state_too_large`, if the values exceed the maximum.
    pub fn write_as(
        &mut self,
        flow: &CompiledFlow,
        data: &mut RunData,
        node: &str,
        ports: Map<String, Value>,
    ) -> Result<(), FlowError> {
        let index = flow
            .find(node)
            .ok_or_else(|| refused(format!("the flow has no node {node:?}")))?;
        let known = |port: &String| has_port(flow, index, port);
        if let Some(port) = ports.keys().find(|port| !known(port)) {
            return Err(refused(format!(
                "node {node:?} has no output port {port:?}"
            )));
        }
        let route = route_of(flow, data, index, &ports)?;
        self.publish_written(flow, data, index, ports)?;
        data.nodes[index].visits += 1;
        let written = self.active.iter_mut().find(|visit| visit.node == index);
        match written {
            Some(visit) if !matches!(visit.stage, VisitStage::Committed(_)) => {
                visit.stage = VisitStage::Committed(route);
            }
            _ => self.follow(flow, data, index, &route),
        }
        self.end_step(flow, data);
        Ok(())
    }

    fn publish_written(
        &mut self,
        flow: &CompiledFlow,
        data: &mut RunData,
        node: NodeIndex,
        mut ports: Map<String, Value>,
    ) -> Result<(), FlowError> {
        let texts = ["out", "result"].map(|port| ports.shift_remove(port));
        let objects = ["score", "plan"].into_iter();
        let mut objects =
            objects.filter_map(|port| ports.get(port).filter(|value| value.is_object()));
        let text = texts.into_iter().flatten().next();
        let text = text.or_else(|| objects.next().cloned());
        let turn_mode = match &flow.nodes[node].driver {
            Driver::Agent(agent) => Some(agent.turn_mode),
            _ => None,
        };
        self.sequence += 1;
        let output = match text {
            Some(text) => Some(NodeOutput {
                turn_mode,
                sequence: self.sequence,
                ..output_of(text)
            }),
            None => data.nodes[node].output.clone(),
        };
        let mut all = data.nodes[node].ports.clone();
        all.extend(ports);
        self.publish_within(flow, data, node, output, all)
    }
}

fn output_of(value: Value) -> NodeOutput {
    match value {
        Value::String(text) => NodeOutput::text(text),
        value => NodeOutput {
            structured: value.is_object().then(|| value.clone()),
            ..NodeOutput::text(value.to_string())
        },
    }
}

fn has_port(flow: &CompiledFlow, node: NodeIndex, port: &str) -> bool {
    let declared = &flow.nodes[node].outputs;
    matches!(port, "out" | "result" | "response" | "error")
        || declared.iter().any(|output| output.port_id == port)
        || has_handle(flow, node, port)
}

fn has_handle(flow: &CompiledFlow, node: NodeIndex, name: &str) -> bool {
    let mut edges = flow.control[node].iter();
    edges.any(|edge| edge.handle.as_deref() == Some(name))
}

/// Returns the edges that the node takes with these values.
fn route_of(
    flow: &CompiledFlow,
    data: &RunData,
    node: NodeIndex,
    ports: &Map<String, Value>,
) -> Result<Route, FlowError> {
    if ports.contains_key("error") && !flow.error_edges[node].is_empty() {
        return Ok(Route::Error);
    }
    match &flow.nodes[node].driver {
        Driver::Router => routing::first_match(flow, data, node, Some(node)),
        Driver::Human(_) | Driver::Loop(_) | Driver::PlanLoop(_) => {
            let named = ports.keys().map(String::as_str);
            let texts = ["response", "out", "result"].into_iter();
            let texts = texts.filter_map(|port| ports.get(port)?.as_str());
            let handle = named.chain(texts).find(|name| has_handle(flow, node, name));
            let response = ports.contains_key("response") || ports.contains_key("out");
            let handle = handle.unwrap_or(if response { "response" } else { "out" });
            routing::handle(flow, data, node, Some(node), handle, Some("out"))
        }
        _ => Ok(Route::All),
    }
}
