//! Sessions: one per agent, one turn at a time, disposed at every end.

use deerflow_flow::adapters::fake::FakeCall;
use serde_json::{Value, json};

use crate::fixture::{Fixture, agent, document, edge, node};

fn call_names(fixture: &Fixture) -> Vec<&'static str> {
    let name = |call: &FakeCall| match call {
        FakeCall::Session(..) => "session",
        FakeCall::Turn(_) => "turn",
        FakeCall::Abort(_) => "abort",
        FakeCall::Dispose(_) => "dispose",
    };
    fixture.fake.calls().iter().map(name).collect()
}

#[test]
fn nodes_of_an_agent_share_a_session() {
    let fixture = Fixture::new(&[agent("x"), agent("y")], &[edge("x", "y")], json!({}));
    let end = fixture.run();
    assert_eq!(call_names(&fixture), ["session", "turn", "turn", "dispose"]);
    assert_eq!(end.machine.sessions().count(), 0);
}

#[test]
fn failed_runs_dispose_their_sessions() {
    let fixture = Fixture::new(&[agent("x")], &[], json!({"x": [{"status": "blocked"}]}));
    let end = fixture.run();
    assert_eq!(crate::fixture::failure(&end).code, "turn_blocked");
    assert_eq!(call_names(&fixture), ["session", "turn", "dispose"]);
}

#[test]
fn turns_of_parallel_nodes_do_not_overlap() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("b1"),
        agent("b2"),
    ];
    let mut document = document(&nodes, &[edge("s", "b1"), edge("s", "b2")]);
    document["runtime"] = json!({"maxConcurrency": 2});
    document["agents"]["agentDefs"][0]["timeouts"] = json!({"turnMs": 1000});
    let fixture = Fixture::of(&document, json!({"b1": [{"hang": true}]}));
    fixture.run();
    // The second turn would have begun while the first was open.
    assert_eq!(
        call_names(&fixture),
        ["session", "turn", "abort", "dispose"]
    );
}

#[test]
fn later_turns_receive_the_earlier_ones() {
    let fixture = Fixture::new(&[agent("x"), agent("y")], &[edge("x", "y")], json!({}));
    fixture.run();
    assert!(fixture.turn("x").messages.is_empty());
    let messages = json!(*fixture.turn("y").messages);
    let expected = json!([
        {"role": "user", "content": "T"},
        {"role": "assistant", "content": "x/normal/1"},
    ]);
    assert_eq!(messages, expected);
}

#[test]
fn history_is_bounded_and_can_be_switched_off() {
    let nodes: Vec<Value> = (0..5).map(|n| agent(&format!("n{n}"))).collect();
    let edges: Vec<Value> = (0..4)
        .map(|n| edge(&format!("n{n}"), &format!("n{}", n + 1)))
        .collect();
    let count = |definition: Value| {
        let mut document = document(&nodes, &edges);
        for (key, value) in definition.as_object().unwrap() {
            document["agents"]["agentDefs"][0][key] = value.clone();
        }
        let fixture = Fixture::of(&document, json!({}));
        fixture.run();
        fixture.turn("n4").messages.len()
    };
    assert_eq!(count(json!({})), 8);
    assert_eq!(count(json!({"memoryPolicy": {"maxItems": 3}})), 3);
    assert_eq!(count(json!({"memoryPolicy": {"maxBytes": 25}})), 2);
    assert_eq!(
        count(json!({"memoryPolicy": {"visibleScopes": ["session"]}})),
        0
    );
    assert_eq!(count(json!({"adapterConfig": {"history": "none"}})), 0);
}

#[test]
fn old_session_is_replaced_with_its_history() {
    let mut document = document(&[agent("x"), agent("y")], &[edge("x", "y")]);
    document["agents"]["agentDefs"][0]["timeouts"] = json!({"sessionMs": 1});
    let mut fixture = Fixture::of(&document, json!({}));
    fixture.clock_step_ms = 10;
    fixture.run();
    assert_eq!(
        call_names(&fixture),
        ["session", "turn", "dispose", "session", "turn", "dispose"]
    );
    assert_eq!(fixture.turn("y").messages.len(), 2);
}
