//! Values of a run by node: visits, outputs, ports, loops, and the result.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::input::RunInput;
use super::output::{LoopState, NodeData, NodeOutput};
use crate::adapter::FlowError;
use crate::compiled::{CompiledFlow, NodeIndex};
use crate::condition::{Root, Scope};

/// Maximum number of errors that a run records.
const MAX_ERRORS: usize = 100;

/// Values of a run. The text of an agent is stored once, in its output: the ports `out` and
/// `result` are derived from it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    pub(super) input: RunInput,
    pub(super) nodes: Vec<NodeData>,
    pub(super) latest_agent: Option<NodeIndex>,
    pub(super) result: Option<Value>,
    pub(super) errors: Vec<FlowError>,
    pub(super) bytes: usize,
}

impl RunData {
    /// Creates the values of a run that begins.
    pub fn new(flow: &CompiledFlow, input: RunInput) -> Self {
        Self {
            input,
            nodes: vec![NodeData::default(); flow.nodes.len()],
            latest_agent: None,
            result: None,
            errors: Vec::new(),
            bytes: 0,
        }
    }

    /// Replaces the input.
    #[must_use]
    pub fn with_input(mut self, input: RunInput) -> Self {
        self.input = input;
        self
    }

    /// Returns the input.
    pub fn input(&self) -> &RunInput {
        &self.input
    }

    /// Returns the value of an output port of a node.
    pub fn port(&self, node: NodeIndex, port: &str) -> Option<&Value> {
        self.nodes.get(node)?.port(port)
    }

    /// Returns the values that a node published, by port, without `result`, which equals `out`.
    pub fn published(&self, node: NodeIndex) -> Map<String, Value> {
        let Some(data) = self.nodes.get(node) else {
            return Map::new();
        };
        let text = data.output.as_ref().map(NodeOutput::text_value);
        let out = text.map(|text| ("out".to_owned(), text.clone()));
        let ports = data.ports.iter();
        out.into_iter()
            .chain(ports.map(|(port, value)| (port.clone(), value.clone())))
            .collect()
    }

    /// Returns the output of a node.
    pub fn output(&self, node: NodeIndex) -> Option<&NodeOutput> {
        self.nodes.get(node)?.output.as_ref()
    }

    /// Returns the number of visits of a node.
    pub fn visits(&self, node: NodeIndex) -> u64 {
        self.nodes.get(node).map_or(0, |data| data.visits)
    }

    /// Returns the position of a loop node.
    pub fn loop_state(&self, node: NodeIndex) -> Option<LoopState> {
        self.nodes.get(node)?.loop_state
    }

    /// Returns the agent node whose output is the newest.
    pub fn latest_agent(&self) -> Option<NodeIndex> {
        self.latest_agent
    }

    /// Returns the result that a finish node wrote; without one, the text of the latest agent.
    pub fn result(&self) -> Option<Value> {
        self.result
            .clone()
            .or_else(|| Some(self.output(self.latest_agent?)?.text_value().clone()))
    }

    /// Returns the errors of nodes, the oldest first.
    pub fn errors(&self) -> &[FlowError] {
        &self.errors
    }

    /// Returns the estimated size of outputs and ports, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size after a node's output and ports are replaced.
    pub(super) fn bytes_with(&self, node: NodeIndex, replacement: &NodeData) -> usize {
        (self.bytes + replacement.bytes()).saturating_sub(self.nodes[node].bytes())
    }

    /// Replaces output and ports of a node.
    pub(super) fn publish(
        &mut self,
        node: NodeIndex,
        output: Option<NodeOutput>,
        ports: BTreeMap<String, Value>,
    ) {
        let loop_state = self.nodes[node].loop_state;
        let visits = self.nodes[node].visits;
        if output
            .as_ref()
            .is_some_and(|output| output.turn_mode.is_some())
        {
            self.latest_agent = Some(node);
        }
        let replacement = NodeData {
            visits,
            output,
            ports,
            loop_state,
        };
        self.bytes = self.bytes_with(node, &replacement);
        self.nodes[node] = replacement;
    }

    pub(super) fn record_error(&mut self, error: FlowError) {
        if self.errors.len() == MAX_ERRORS {
            self.errors.remove(0);
        }
        self.errors.push(error);
    }
}

/// Values that a condition of an edge reads. `last` is the node that the edge leaves.
pub(super) struct DataScope<'a> {
    pub(super) flow: &'a CompiledFlow,
    pub(super) data: &'a RunData,
    pub(super) last: Option<NodeIndex>,
}

impl Scope for DataScope<'_> {
    fn value(&self, root: &Root) -> Option<Cow<'_, Value>> {
        let last = || self.data.output(self.last?);
        match root {
            Root::Input => Some(Cow::Borrowed(self.data.input.value())),
            Root::Port { node, port } => self
                .data
                .port(self.flow.find(node)?, port)
                .map(Cow::Borrowed),
            Root::LastText => Some(Cow::Borrowed(last()?.text_value())),
            Root::LastStructured => last()?.structured.as_ref().map(Cow::Borrowed),
            Root::Round(node) => {
                let round = self.data.loop_state(self.flow.find(node)?)?.round;
                Some(Cow::Owned(round.into()))
            }
        }
    }
}
