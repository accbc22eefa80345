//! Values of a run as state channels, which merge by node id.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::data::RunData;
use super::input::RunInput;
use super::output::{LoopState, NodeOutput};
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{CompiledFlow, NodeIndex};

impl RunData {
    /// Returns the channels that differ for these nodes: `ports`, `outputs`, `visits` and `loops`,
    /// each an object by node id in which null removes the entry.
    pub fn update(&self, flow: &CompiledFlow, nodes: &[NodeIndex]) -> Map<String, Value> {
        let mut channels: [Map<String, Value>; 4] = Default::default();
        for &node in nodes {
            let Some(data) = self.nodes.get(node) else {
                continue;
            };
            let or_null = |value: Option<Value>| value.unwrap_or(Value::Null);
            let entries = [
                or_null((!data.ports.is_empty()).then(|| json!(data.ports))),
                or_null(data.output.as_ref().map(|output| json!(output))),
                json!(data.visits),
                or_null(data.loop_state.as_ref().map(|state| json!(state))),
            ];
            for (channel, entry) in channels.iter_mut().zip(entries) {
                channel.insert(flow.nodes[node].id.to_string(), entry);
            }
        }
        let names = ["ports", "outputs", "visits", "loops"];
        names
            .into_iter()
            .zip(channels)
            .map(|(name, channel)| (name.to_owned(), Value::Object(channel)))
            .collect()
    }

    /// Returns all channels: `input`, `ports`, `outputs`, `visits`, `loops`, `result` and `errors`.
    pub fn channels(&self, flow: &CompiledFlow) -> Map<String, Value> {
        let all: Vec<NodeIndex> = (0..self.nodes.len()).collect();
        let mut channels = self.update(flow, &all);
        for channel in channels.values_mut().filter_map(Value::as_object_mut) {
            channel.retain(|_, entry| !entry.is_null() && *entry != json!(0));
        }
        channels.insert("input".to_owned(), self.input.value().clone());
        if let Some(result) = &self.result {
            channels.insert("result".to_owned(), result.clone());
        }
        if !self.errors.is_empty() {
            channels.insert("errors".to_owned(), json!(self.errors));
        }
        channels
    }

    /// Restores the values from channels. Nodes that the flow does not have are ignored.
    ///
    /// # Errors
    /// `state_unreadable`, if a channel has another shape.
    pub fn restore(flow: &CompiledFlow, channels: &Map<String, Value>) -> Result<Self, FlowError> {
        let input = channels.get("input").cloned().unwrap_or(Value::Null);
        let mut data = Self::new(flow, RunInput::read(input)?);
        for (node, ports) in read::<BTreeMap<String, Value>>(flow, channels, "ports")? {
            data.nodes[node].ports = ports;
        }
        for (node, output) in read::<NodeOutput>(flow, channels, "outputs")? {
            data.nodes[node].output = Some(output);
        }
        for (node, visits) in read::<u64>(flow, channels, "visits")? {
            data.nodes[node].visits = visits;
        }
        for (node, state) in read::<LoopState>(flow, channels, "loops")? {
            data.nodes[node].loop_state = Some(state);
        }
        data.result = channels
            .get("result")
            .filter(|result| !result.is_null())
            .cloned();
        if let Some(errors) = channels.get("errors").filter(|errors| !errors.is_null()) {
            data.errors = parse("errors", errors.clone())?;
        }
        data.bytes = data.nodes.iter().map(super::output::NodeData::bytes).sum();
        let newest = |node: &NodeIndex| {
            let output = data.nodes[*node].output.as_ref();
            output
                .filter(|output| output.turn_mode.is_some())
                .map(|output| output.sequence)
        };
        data.latest_agent = (0..data.nodes.len())
            .filter(|node| newest(node).is_some())
            .max_by_key(newest);
        Ok(data)
    }
}

fn read<T: DeserializeOwned>(
    flow: &CompiledFlow,
    channels: &Map<String, Value>,
    name: &str,
) -> Result<Vec<(NodeIndex, T)>, FlowError> {
    let Some(channel) = channels.get(name).filter(|channel| !channel.is_null()) else {
        return Ok(Vec::new());
    };
    let entries: BTreeMap<String, Value> = parse(name, channel.clone())?;
    entries
        .into_iter()
        .filter(|(_, entry)| !entry.is_null())
        .filter_map(|(id, entry)| Some((flow.find(&id)?, entry)))
        .map(|(node, entry)| Ok((node, parse(name, entry)?)))
        .collect()
}

fn parse<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, FlowError> {
    serde_json::from_value(value).map_err(|error| {
        FlowError::new(
            "state_unreadable",
            ErrorCategory::Engine,
            format!("channel {name} is unreadable: {error}"),
        )
    })
}
