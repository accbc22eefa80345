//! Update of a thread that a client writes as a node of the flow.

use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_runtime::agent::{InputError, NodeWrite, NodeWritten};
use serde_json::{Map, Value, json};

use super::input::{channel_values, run_input};
use super::pending::pending_tasks;
use super::saved_flow::SavedFlow;
use super::start::cleared;
use super::step_changes::StepChanges;
use crate::adapter::FlowError;
use crate::compiled::CompiledFlow;
use crate::machine::{FlowMachine, RunBounds, RunData, RunInput};

/// Names of the start and the end of a graph as clients know them.
const START: &str = "__start__";
const END: &str = "__end__";
/// Maximum length of a node id in an error, in characters.
const MAX_NAMED_CHARS: usize = 80;
/// Channels that are no ports, unless a node has a port of such a name.
const CHANNELS: [&str; 8] = [
    "messages", "title", "input", "visits", "loops", "waiting", "sessions", "errors",
];

/// Writes values as a node: keys are its ports. Values of the channels `ports` and `outputs` are
/// accepted, too.
pub(super) fn write_as(
    flow: &CompiledFlow,
    write: NodeWrite<'_>,
) -> Result<NodeWritten, InputError> {
    match write.node {
        START => return at_start(flow, write),
        END => {
            let values = write.values;
            return Ok(NodeWritten {
                values,
                ..NodeWritten::default()
            });
        }
        node if flow.find(node).is_none() => {
            let node: String = node.chars().take(MAX_NAMED_CHARS).collect();
            return Err(InputError::Invalid {
                path: Vec::new(),
                reason: format!("the flow has no node {node:?}"),
                value: Value::Null,
            });
        }
        _ => {}
    }
    let refused = |error: FlowError| InputError::Invalid {
        path: Vec::new(),
        reason: error.message,
        value: Value::Null,
    };
    let (node, bounds) = (write.node, RunBounds::default());
    let (ports, values) = split(flow, node, write.values);
    let saved = write.machine.cloned();
    let saved = saved.and_then(|saved| serde_json::from_value::<SavedFlow>(saved).ok());
    let (saved, mut changes) = match saved.map(SavedFlow::into_parts) {
        Some(Ok((machine, changes))) => (Some(machine), changes),
        Some(Err(_)) | None => (None, StepChanges::default()),
    };
    let mut channels = channels_of(write.state);
    changes.add_to(&mut channels);
    let mut data = RunData::restore(flow, &channels).map_err(refused)?;
    data = data.with_input(run_input(write.state));
    let mut machine = match saved {
        Some(machine) => FlowMachine::restore(flow, bounds, machine),
        None => parked(flow, &data, write.seed, &[]),
    }
    .map_err(refused)?;
    machine
        .write_as(flow, &mut data, node, ports)
        .map_err(refused)?;
    let index = flow.find(node).unwrap_or_default();
    changes.add(data.update(flow, &[index]));
    let mut update = changes.take_update();
    let waiting: Vec<&str> = machine
        .waiting()
        .map(|node| &*flow.nodes[node].id)
        .collect();
    if !waiting.is_empty() {
        update = update.and("waiting", json!(waiting));
    } else if write.state.channel("waiting").is_some() {
        update = update.and("waiting", Value::Null);
    }
    Ok(positioned(flow, (&machine, &changes), update, values))
}

/// Makes a machine that runs these nodes next.
pub(super) fn parked(
    flow: &CompiledFlow,
    data: &RunData,
    seed: uuid::Uuid,
    nodes: &[&str],
) -> Result<FlowMachine, FlowError> {
    let mut machine = FlowMachine::new(flow, RunBounds::default(), seed, 0);
    machine.goto(flow, data, nodes)?;
    Ok(machine)
}

/// Writes an input: the start node is next, on no other values.
fn at_start(flow: &CompiledFlow, write: NodeWrite<'_>) -> Result<NodeWritten, InputError> {
    let values = channel_values(write.values)?;
    let machine = FlowMachine::new(flow, RunBounds::default(), write.seed, 0);
    let saved = (&machine, &StepChanges::default());
    Ok(positioned(flow, saved, cleared(write.state), values))
}

fn positioned(
    flow: &CompiledFlow,
    (machine, changes): (&FlowMachine, &StepChanges),
    update: StateUpdate,
    values: Map<String, Value>,
) -> NodeWritten {
    let next = pending_tasks(flow, machine);
    let machine = (!next.is_empty()).then(|| SavedFlow::new("", machine, changes).to_value());
    NodeWritten {
        update,
        values,
        next,
        machine,
    }
}

fn channels_of(state: &ThreadState) -> Map<String, Value> {
    let channels = state.channels().iter();
    channels
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Splits values into those of the node's ports and those of channels.
fn split(
    flow: &CompiledFlow,
    node: &str,
    values: Map<String, Value>,
) -> (Map<String, Value>, Map<String, Value>) {
    let declares = |port: &str| {
        let index = flow.find(node).unwrap_or_default();
        let mut outputs = flow.nodes[index].outputs.iter();
        outputs.any(|output| output.port_id == port)
    };
    let (mut ports, mut rest) = (Map::new(), Map::new());
    for (key, value) in values {
        match (key.as_str(), value) {
            ("ports" | "outputs", Value::Object(mut entries)) if !declares(&key) => {
                match entries.shift_remove(node) {
                    Some(Value::Object(entry)) if key == "ports" => ports.extend(entry),
                    Some(Value::Object(mut entry)) => {
                        let text = entry.shift_remove("text");
                        let output = text.or_else(|| entry.shift_remove("structured"));
                        ports.extend(output.map(|output| ("out".to_owned(), output)));
                    }
                    Some(other) => {
                        ports.insert("out".to_owned(), other);
                    }
                    None => {}
                }
                if !entries.is_empty() {
                    rest.insert(key, Value::Object(entries));
                }
            }
            (name, value) if CHANNELS.contains(&name) && !declares(name) => {
                rest.insert(key, value);
            }
            (_, value) => {
                ports.insert(key, value);
            }
        }
    }
    (ports, rest)
}

/// Makes the saved position of a thread that will run these nodes.
pub(super) fn parked_value(flow: &CompiledFlow, nodes: &[&str], seed: uuid::Uuid) -> Option<Value> {
    let data = RunData::new(flow, RunInput::default());
    let machine = parked(flow, &data, seed, nodes).ok()?;
    Some(SavedFlow::new("", &machine, &StepChanges::default()).to_value())
}
