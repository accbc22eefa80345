//! Failures of nodes: retries, defaults, error branches and fail-fast.

use deerflow_flow::driver::FlowOutcome;
use serde_json::{Value, json};

use crate::fixture::{Fixture, agent, agent_with, edge, failure, handle, node, result};

fn failed(code: &str, retryable: bool) -> Value {
    json!({"status": "failed", "error": {"code": code, "message": "m", "retryable": retryable}})
}

#[test]
fn retry_uses_the_session_and_a_new_invocation() {
    let nodes = [agent_with("x", json!({"retry": {"maxAttempts": 3}}))];
    let script = json!({"x": [failed("E", true), failed("E", true), {"text": "ok"}]});
    let fixture = Fixture::new(&nodes, &[], script);
    assert_eq!(result(&fixture.run()), json!("ok"));
    let turns = fixture.turns();
    assert_eq!(turns.len(), 3);
    assert!(
        turns
            .iter()
            .all(|turn| turn.session_id == turns[0].session_id && turn.visit == 1)
    );
    assert_ne!(turns[0].invocation_id, turns[1].invocation_id);
    let retries: Vec<String> = fixture
        .lines()
        .into_iter()
        .filter(|line| line.starts_with("node_retry"))
        .collect();
    assert_eq!(retries, ["node_retry x 2", "node_retry x 3"]);
}

#[test]
fn the_last_attempt_fails_the_node() {
    let nodes = [agent_with("x", json!({"retry": {"maxAttempts": 2}}))];
    let script = json!({"x": [failed("E1", true), failed("E2", true), {"text": "late"}]});
    let fixture = Fixture::new(&nodes, &[], script);
    assert_eq!(failure(&fixture.run()).code, "E2");
}

#[test]
fn error_edge_receives_the_error() {
    let nodes = [agent("x"), agent("y"), agent("z")];
    let mut data = crate::fixture::data("x", "error", "z", "problem");
    data["dataEdge"] = json!(true);
    let edges = [edge("x", "y"), handle("x", "error", "z")];
    let fixture = Fixture::new(&nodes, &edges, json!({"x": [failed("E1", false)]}));
    let end = fixture.run();
    assert_eq!(fixture.order(), ["x", "z"]);
    let port = end.data.port(0, "error").cloned().unwrap();
    assert_eq!(port, json!({"code": "E1", "nodeId": "x", "message": "m"}));
    assert_eq!(end.data.errors()[0].code, "E1");
}

#[test]
fn default_object_is_text_and_structured() {
    let nodes = [
        agent_with(
            "x",
            json!({"onError": "continue", "defaultOutput": {"n": 1}}),
        ),
        agent("y"),
    ];
    let fixture = Fixture::new(
        &nodes,
        &[edge("x", "y")],
        json!({"x": [failed("E1", false)]}),
    );
    let end = fixture.run();
    assert_eq!(end.data.port(0, "result"), Some(&json!("{\"n\":1}")));
    assert_eq!(
        end.data.output(0).unwrap().structured,
        Some(json!({"n": 1}))
    );
}

#[test]
fn failure_stops_siblings_and_retains_finished_ones() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("done"),
        agent("open"),
        agent("bad"),
        agent("late"),
    ];
    let mut document = crate::fixture::document(
        &nodes,
        &[
            edge("s", "done"),
            edge("s", "open"),
            edge("s", "bad"),
            edge("s", "late"),
        ],
    );
    document["runtime"] = json!({"maxConcurrency": 3});
    document["agents"]["agentDefs"] = json!([
        {"agentId": "a", "adapterKind": "fake"}, {"agentId": "b", "adapterKind": "fake"},
    ]);
    document["graph"]["nodes"][2]["agentId"] = json!("b");
    let script = json!({"open": [{"hang": true}], "bad": [failed("E1", false)]});
    let fixture = Fixture::of(&document, script);
    let end = fixture.run();
    assert_eq!(failure(&end).code, "E1");
    assert_eq!(fixture.order(), ["s", "done", "bad"]);
    assert!(
        fixture
            .fake
            .calls()
            .iter()
            .any(|call| format!("{call:?}").starts_with("Abort"))
    );
    let next: Vec<&str> = end
        .machine
        .next_nodes()
        .into_iter()
        .map(|node| &*fixture.flow.nodes[node].id)
        .collect();
    assert_eq!(next, ["open", "bad", "late"]);
    // A new run repeats what did not finish, and only that.
    let end = fixture.resume(end, Value::Null);
    assert!(matches!(end.outcome, FlowOutcome::Finished(_)));
    assert_eq!(fixture.order(), ["s", "done", "bad", "open", "bad", "late"]);
}

#[test]
fn panic_of_a_turn_fails_the_node() {
    let fixture = Fixture::new(&[agent("x")], &[], json!({"x": [{"panic": true}]}));
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("node_panicked", Some("x"))
    );
    assert!(
        fixture
            .fake
            .calls()
            .iter()
            .any(|call| format!("{call:?}").starts_with("Dispose"))
    );
}

#[test]
fn unknown_adapter_fails_the_node_and_names_the_kinds() {
    let mut document = crate::fixture::document(&[agent("x")], &[]);
    document["agents"]["agentDefs"][0]["adapterKind"] = json!("nope");
    let error = failure(&Fixture::of(&document, json!({})).run());
    assert_eq!(error.code, "adapter_not_found");
    assert!(error.message.contains("fake"), "{}", error.message);
}

#[test]
fn oversized_state_fails_the_node() {
    let text = "x".repeat(200_000);
    let nodes = [
        node("l", "control.loop", json!({"maxIterations": 60})),
        agent("w"),
    ];
    let edges = [handle("l", "loop", "w"), edge("w", "l")];
    let turn = json!({"text": text, "structured": {"v": "y".repeat(9 << 20)}});
    let fixture = Fixture::new(&nodes, &edges, json!({"w": [turn]}));
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("state_too_large", Some("w"))
    );
}

#[test]
fn long_text_is_truncated_with_a_mark() {
    let text = "ä".repeat(200_000);
    let fixture = Fixture::new(&[agent("x")], &[], json!({"x": [{"text": text}]}));
    let result = result(&fixture.run());
    let result = result.as_str().unwrap();
    assert!(result.len() <= 256 << 10 && result.ends_with("[truncated]"));
}
