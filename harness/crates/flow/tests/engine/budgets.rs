//! Budgets of runs, agents and nodes.

use serde_json::json;

use crate::fixture::{Fixture, agent, document, edge, failure};

fn chain(budgets: serde_json::Value, global: serde_json::Value) -> Fixture {
    let nodes = [agent("x"), agent("y"), agent("z")];
    let mut document = document(&nodes, &[edge("x", "y"), edge("y", "z")]);
    document["agents"]["agentDefs"][0]["budgets"] = budgets;
    document["runtime"] = json!({"globalBudget": global});
    let turn = json!([{"usage": {"inputTokens": 40, "outputTokens": 20, "totalTokens": 60, "costUsd": 0.5}}]);
    Fixture::of(&document, json!({"x": turn, "y": turn, "z": turn}))
}

#[test]
fn turn_that_crosses_a_token_limit_is_kept() {
    let fixture = chain(json!({"maxTokens": 100}), json!({}));
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("budget_exceeded", Some("z"))
    );
    assert_eq!(error.details["scope"], json!("agent"));
    assert_eq!(fixture.turns().len(), 2);
}

#[test]
fn cost_of_the_run_is_limited() {
    let fixture = chain(json!({}), json!({"maxCostUsd": 0.5}));
    let error = failure(&fixture.run());
    assert_eq!(error.node_id.as_deref(), Some("y"));
    assert_eq!(error.details["budget"], json!("maxCostUsd"));
}

#[test]
fn steps_of_an_agent_are_limited() {
    let fixture = chain(json!({"maxSteps": 1}), json!({}));
    assert_eq!(failure(&fixture.run()).node_id.as_deref(), Some("y"));
}

#[test]
fn retries_count_as_steps() {
    let mut document = document(&[agent("x")], &[]);
    document["runtime"] = json!({"globalBudget": {"maxSteps": 2}});
    document["graph"]["nodes"][0]["config"] = json!({"retry": {"maxAttempts": 5}});
    let failed = json!({"status": "failed", "error": {"code": "E", "retryable": true}});
    let fixture = Fixture::of(&document, json!({"x": [failed, failed, failed]}));
    assert_eq!(failure(&fixture.run()).code, "budget_exceeded");
    assert_eq!(fixture.turns().len(), 2);
}

#[test]
fn totals_count_runs_agents_and_nodes() {
    let end = chain(json!({}), json!({})).run();
    let ledger = end.machine.ledger();
    assert_eq!((ledger.run.turns, ledger.run.usage.total_tokens), (3, 180));
    assert_eq!(ledger.agents["a"].usage.cost_usd, Some(1.5));
    assert_eq!(ledger.nodes[&1].turns, 1);
}

#[test]
fn new_run_begins_with_unused_budgets() {
    let fixture = chain(json!({"maxSteps": 2}), json!({}));
    let end = fixture.run();
    assert_eq!(failure(&end).node_id.as_deref(), Some("z"));
    let end = fixture.resume(end, serde_json::Value::Null);
    assert_eq!(crate::fixture::result(&end), json!("z/normal/1"));
}
