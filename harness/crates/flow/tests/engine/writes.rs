//! Writes from outside of a run that are attributed to a node.

use deerflow_flow::driver::FlowStart;
use deerflow_flow::machine::{FlowMachine, RunData};
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, agent, edge, handle, node};

fn ports(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

fn next(fixture: &Fixture, machine: &FlowMachine) -> Vec<String> {
    let nodes = machine.next_nodes().into_iter();
    nodes
        .map(|node| fixture.flow.nodes[node].id.to_string())
        .collect()
}

/// A machine at no node, and empty values.
fn parked(fixture: &Fixture) -> (FlowMachine, RunData) {
    let data = RunData::new(&fixture.flow, Default::default());
    let mut machine = FlowMachine::new(&fixture.flow, Default::default(), Default::default(), 0);
    machine.goto(&fixture.flow, &data, &[]).unwrap();
    (machine, data)
}

#[test]
fn write_as_one_branch_leaves_the_other_pending() {
    let fixture = Fixture::new(
        &[
            node("split", "control.parallel", json!({})),
            agent("left"),
            agent("right"),
            node("join", "control.join", json!({})),
        ],
        &[
            edge("split", "left"),
            edge("split", "right"),
            edge("left", "join"),
            edge("right", "join"),
        ],
        json!({}),
    );
    let (mut machine, mut data) = parked(&fixture);
    let flow = &fixture.flow;
    machine
        .write_as(flow, &mut data, "split", Map::new())
        .unwrap();
    assert_eq!(next(&fixture, &machine), ["left", "right"]);
    let text = ports(json!({"out": "by hand"}));
    machine.write_as(flow, &mut data, "left", text).unwrap();
    assert_eq!(next(&fixture, &machine), ["right"]);
    fixture.start(FlowStart::Resumed(Box::new(machine), Box::new(data)));
    assert_eq!(fixture.order(), ["right", "join"]);
}

#[test]
fn write_as_a_loop_takes_the_handle_that_is_named() {
    let fixture = Fixture::new(
        &[
            node("loop", "control.loop", json!({})),
            agent("work"),
            agent("after"),
        ],
        &[
            handle("loop", "loop", "work"),
            handle("loop", "done", "after"),
            edge("work", "loop"),
        ],
        json!({}),
    );
    let (mut machine, mut data) = parked(&fixture);
    let flow = &fixture.flow;
    let refused = machine.write_as(flow, &mut data, "loop", Map::new());
    assert_eq!(refused.unwrap_err().code, "no_route");
    let done = ports(json!({"done": true}));
    machine.write_as(flow, &mut data, "loop", done).unwrap();
    assert_eq!(next(&fixture, &machine), ["after"]);
}

#[test]
fn write_keeps_the_ports_without_a_new_value() {
    let fixture = Fixture::new(&[agent("x"), agent("y")], &[edge("x", "y")], json!({}));
    let (mut machine, mut data) = parked(&fixture);
    let flow = &fixture.flow;
    let first = ports(json!({"out": "text", "plan": {"steps": 1}}));
    machine.write_as(flow, &mut data, "x", first).unwrap();
    let second = ports(json!({"out": "other"}));
    machine.write_as(flow, &mut data, "x", second).unwrap();
    assert_eq!(data.port(0, "out"), Some(&json!("other")));
    assert_eq!(data.port(0, "plan"), Some(&json!({"steps": 1})));
    assert_eq!(next(&fixture, &machine), ["y"]);
    assert_eq!(data.visits(0), 2);
}
