//! States of all nodes of a run, derived from its stored events.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::node_state::{NodeIdentity, NodeState, NodeStatus};
use super::recorded::{RecordedBody, RecordedEvent};
use super::traces::{TracedValue, traced_values};
use crate::compiled::{CompiledFlow, Driver};

/// States of the nodes of a run, by node id. Nodes of a sub-flow have ids of the form
/// `outer/inner`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeStates {
    nodes: BTreeMap<String, NodeState>,
    content_hash: Option<String>,
}

impl NodeStates {
    /// Returns the state of a node that had an event.
    pub fn get(&self, node: &str) -> Option<&NodeState> {
        self.nodes.get(node)
    }

    /// Returns the hash of the flow's content that the run executes. `None` if the run has not begun.
    pub fn content_hash(&self) -> Option<&str> {
        self.content_hash.as_deref()
    }

    /// Applies the next event of the run in the form that
    /// [`FlowEvent::to_value`](super::FlowEvent::to_value) returns. Ignores values of other forms.
    pub fn apply(&mut self, event: &Value) {
        let event_type = event["eventType"].as_str().unwrap_or_default();
        let Ok(event) = RecordedEvent::deserialize(event) else {
            return;
        };
        match &event.body {
            RecordedBody::RunStarted { content_hash }
            | RecordedBody::RunResumed { content_hash } => {
                self.content_hash.clone_from(content_hash);
            }
            RecordedBody::RunInterrupted { interrupts } => self.interrupt(interrupts),
            RecordedBody::RunCompleted {}
            | RecordedBody::RunFailed {}
            | RecordedBody::RunCancelled {} => self.end(),
            _ => {
                if let Some(node) = event.node_id.clone() {
                    self.nodes.entry(node).or_default().apply(event_type, event);
                }
            }
        }
    }

    /// Ends the visits that are open. A run whose process died has no last event of its own.
    pub fn end(&mut self) {
        self.leave(|_| NodeStatus::Cancelled);
    }

    /// Returns the states as clients receive them: the nodes of the flow in the order of its
    /// document, also those without an event, then the nodes of sub-flows. Without a flow, only the
    /// nodes with events.
    pub fn to_json(&self, flow: Option<&CompiledFlow>) -> Vec<Value> {
        let mut rest = self.nodes.clone();
        let mut listed: Vec<(String, NodeState)> = Vec::new();
        if let Some(flow) = flow {
            for node in &flow.nodes {
                let mut state = rest.remove(&*node.id).unwrap_or_default();
                let agent = match &node.driver {
                    Driver::Agent(agent) => Some(agent.agent.agent_id.clone()),
                    _ => None,
                };
                state.identity = NodeIdentity {
                    label: node.label.clone(),
                    node_kind: node.kind.clone(),
                    agent_id: agent,
                };
                listed.push((node.id.to_string(), state));
            }
            for TracedValue {
                source,
                target,
                trace,
            } in traced_values(flow, &listed)
            {
                listed[source].1.output.output_traces.push(trace.clone());
                listed[target].1.input.input_traces.push(trace);
            }
        }
        listed.extend(rest);
        listed
            .into_iter()
            .map(|(id, state)| node_json(&id, &state))
            .collect()
    }

    fn interrupt(&mut self, interrupts: &[Value]) {
        let asks = |node: &str| {
            interrupts
                .iter()
                .filter_map(|interrupt| interrupt["node"].as_str())
                .any(|asking| {
                    let inner = asking.strip_prefix(node);
                    inner.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
        };
        self.leave(|node| {
            if asks(node) {
                NodeStatus::Waiting
            } else {
                NodeStatus::Cancelled
            }
        });
    }

    fn leave(&mut self, status: impl Fn(&str) -> NodeStatus) {
        for (node, state) in &mut self.nodes {
            if state.status == NodeStatus::Running {
                state.leave(status(node));
            }
        }
    }
}

fn node_json(id: &str, state: &NodeState) -> Value {
    let mut json = Map::from_iter([("nodeId".to_owned(), json!(id))]);
    if let Value::Object(fields) = json!(state) {
        json.extend(fields);
    }
    Value::Object(json)
}

#[cfg(test)]
#[path = "node_states_tests.rs"]
mod tests;
