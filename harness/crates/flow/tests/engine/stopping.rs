//! Time limits and cancel.

use std::sync::Arc;

use deerflow_flow::driver::FlowOutcome;
use serde_json::json;

use crate::fixture::{Fixture, agent, document, edge, failure};
use crate::recorder::Recorder;

#[test]
fn turn_limit_aborts_the_turn() {
    let mut document = document(&[agent("x")], &[]);
    document["agents"]["agentDefs"][0]["timeouts"] = json!({"turnMs": 1000});
    let fixture = Fixture::of(&document, json!({"x": [{"hang": true}]}));
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.retryable),
        ("turn_timeout", true)
    );
    let calls: Vec<String> = fixture
        .fake
        .calls()
        .iter()
        .map(|call| format!("{call:?}"))
        .collect();
    assert!(
        calls.iter().any(|call| call.starts_with("Abort")),
        "{calls:?}"
    );
    assert!(
        fixture
            .lines()
            .contains(&"turn_failed x timed_out".to_owned())
    );
}

fn cancelled_after(line: &str) -> (Fixture, FlowOutcome) {
    let mut fixture = Fixture::new(
        &[agent("x"), agent("y")],
        &[edge("x", "y")],
        json!({"y": [{"hang": true}]}),
    );
    let recorder = Recorder {
        cancel_after: vec![line.to_owned()],
        ..Recorder::default()
    };
    fixture.options.cancel = recorder.cancel.clone();
    fixture.recorder = Arc::new(recorder);
    let end = fixture.run();
    (fixture, end.outcome)
}

#[test]
fn cancel_between_nodes_starts_no_later_node() {
    let (fixture, outcome) = cancelled_after("node_completed x");
    assert_eq!(outcome, FlowOutcome::Cancelled);
    assert_eq!(fixture.order(), ["x"]);
    assert_eq!(fixture.lines().last().unwrap(), "run_cancelled");
}

#[test]
fn cancel_of_an_open_turn_disposes_the_session() {
    let (fixture, outcome) = cancelled_after("agent_selected y");
    assert_eq!(outcome, FlowOutcome::Cancelled);
    let calls: Vec<String> = fixture
        .fake
        .calls()
        .iter()
        .map(|call| format!("{call:?}"))
        .collect();
    let ends: Vec<&str> = calls[calls.len() - 2..]
        .iter()
        .map(|call| &call[..5])
        .collect();
    assert_eq!(ends, ["Abort", "Dispo"]);
}

#[test]
fn cancel_ends_the_delay_before_a_retry() {
    let mut document = document(&[agent("x")], &[]);
    document["graph"]["nodes"][0]["config"] = json!({"retry": {"maxAttempts": 2}});
    let script = json!({"x": [{"status": "failed", "error": {"code": "E", "retryable": true}}]});
    let mut fixture = Fixture::of(&document, script);
    let recorder = Recorder {
        cancel_after: vec!["node_retry x 2".to_owned()],
        ..Recorder::default()
    };
    fixture.options.cancel = recorder.cancel.clone();
    fixture.recorder = Arc::new(recorder);
    assert_eq!(fixture.run().outcome, FlowOutcome::Cancelled);
    assert_eq!(fixture.turns().len(), 1);
}
