//! Tests of the states of nodes.

use super::*;

/// Applies events, given as type, node and payload.
fn states(events: &[(&str, &str, Value)]) -> NodeStates {
    let mut states = NodeStates::default();
    for (second, (event_type, node, payload)) in events.iter().enumerate() {
        states.apply(&json!({
            "eventId": "e", "eventType": event_type, "schemaVersion": "1.0", "runId": "r",
            "nodeId": node, "agentId": "writer", "payload": payload,
            "timestamp": format!("2026-01-01T00:00:{second:02}+00:00"),
        }));
    }
    states
}

fn started(visit: u64) -> (&'static str, &'static str, Value) {
    let payload = json!({"kind": "agent.main", "visit": visit, "inputs": {"data": "x"}});
    ("node_started", "a", payload)
}

#[test]
fn completed_node_has_its_values_times_and_usage() {
    let usage = json!({"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "costUsd": 0.5});
    let turn = json!({"usage": usage, "durationMs": 5, "structuredOutput": {"score": 1}});
    let end = json!({"visit": 2, "action": "plan", "ports": {"out": "text"}, "durationMs": 9});
    let states = states(&[
        started(1),
        ("turn_completed", "a", turn.clone()),
        ("node_completed", "a", end.clone()),
        started(2),
        (
            "agent_selected",
            "a",
            json!({"promptSources": [{"scope": "run-input"}]}),
        ),
        ("node_retry", "a", json!({"attempt": 2, "delayMs": 1})),
        ("turn_completed", "a", turn),
        ("node_completed", "a", end),
    ]);
    let node = &states.to_json(None)[0];
    assert_eq!(node["nodeId"], "a");
    assert_eq!(node["status"], "completed");
    assert_eq!((&node["visit"], &node["attempts"]), (&json!(2), &json!(2)));
    assert_eq!(node["usage"]["totalTokens"], 14);
    assert_eq!(node["usage"]["costUsd"], 1.0);
    assert_eq!(node["finalText"], "text");
    assert_eq!(node["structuredOutput"], json!({"score": 1}));
    assert_eq!(node["startedAt"], "2026-01-01T00:00:03Z");
    assert_eq!(node["durationMs"], 9);
    assert_eq!(node["visits"][0]["usage"]["totalTokens"], 7);
    assert_eq!(node["visits"][1]["action"], "plan");
    assert_eq!(node["promptSources"][0]["scope"], "run-input");
}

#[test]
fn end_of_a_run_leaves_no_node_running() {
    let cancelled = ("run_cancelled", "", json!({}));
    for states in [states(&[started(1), cancelled]), {
        let mut open = states(&[started(1)]);
        assert_eq!(
            open.get("a").map(|node| node.status),
            Some(NodeStatus::Running)
        );
        open.end();
        open
    }] {
        let node = states.get("a").expect("a state");
        assert_eq!(node.status, NodeStatus::Cancelled);
        assert_eq!(node.visits[0].status, NodeStatus::Cancelled);
    }
}

#[test]
fn node_with_an_open_question_waits() {
    let interrupts = json!({"interrupts": [{"node": "a/inner"}]});
    let states = states(&[started(1), ("run_interrupted", "a", interrupts)]);
    assert_eq!(
        states.get("a").map(|node| node.status),
        Some(NodeStatus::Waiting)
    );
}

#[test]
fn unreadable_events_are_ignored() {
    let states = states(&[
        ("node_started", "a", json!("cut")),
        ("node_invented", "a", json!({})),
    ]);
    assert_eq!(states, NodeStates::default());
}
