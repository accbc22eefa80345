//! Order of nodes: supersteps, joins, routers and loops.

use serde_json::json;

use crate::fixture::{Fixture, agent, agent_with, edge, failure, handle, node, result};

#[test]
fn a_node_activated_twice_in_a_step_runs_once() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("b1"),
        agent("b2"),
        agent("m"),
    ];
    let edges = [
        edge("s", "b1"),
        edge("s", "b2"),
        edge("b1", "m"),
        edge("b2", "m"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    fixture.run();
    assert_eq!(fixture.steps(), [vec!["s"], vec!["b1", "b2"], vec!["m"]]);
    let prompt = fixture.turn("m").user_prompt;
    assert!(
        prompt.contains("b1/normal/1") && prompt.contains("b2/normal/1"),
        "{prompt}"
    );
}

#[test]
fn join_any_fires_in_each_step() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("b"),
        agent("c"),
        agent("m"),
    ];
    let edges = [
        edge("s", "b"),
        edge("s", "m"),
        edge("b", "c"),
        edge("c", "m"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    fixture.run();
    assert_eq!(
        fixture.steps(),
        [vec!["s"], vec!["b", "m"], vec!["c"], vec!["m"]]
    );
}

#[test]
fn join_all_waits_for_the_longer_branch() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("b"),
        agent("c"),
        agent("d"),
        node("j", "control.join", json!({})),
        agent("m"),
    ];
    let edges = [
        edge("s", "b"),
        edge("s", "d"),
        edge("b", "c"),
        edge("c", "j"),
        edge("d", "j"),
        edge("j", "m"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    let end = fixture.run();
    assert_eq!(
        fixture.steps(),
        [vec!["s"], vec!["b", "d"], vec!["c"], vec!["j"], vec!["m"]]
    );
    let prompt = fixture.turn("m").user_prompt;
    assert!(
        prompt.contains("d/normal/1") && prompt.contains("c/normal/1"),
        "{prompt}"
    );
    assert_eq!(result(&end), json!("m/normal/1"));
}

#[test]
fn join_all_is_released_when_nothing_else_is_active() {
    let nodes = [
        node("r", "control.condition", json!({})),
        agent("b"),
        agent("c"),
        node("j", "control.join", json!({})),
        node("f", "control.finish", json!({})),
    ];
    let edges = [
        edge("r", "b"),
        edge("b", "j"),
        edge("c", "j"),
        edge("j", "f"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    assert_eq!(result(&fixture.run()), json!("b/normal/1"));
    assert_eq!(fixture.order(), ["r", "b", "j", "f"]);
}

#[test]
fn finish_waits_for_every_branch() {
    let nodes = [
        node("s", "control.parallel", json!({})),
        agent("b"),
        agent("c"),
        node("f", "control.finish", json!({})),
    ];
    let edges = [
        edge("s", "b"),
        edge("s", "f"),
        edge("b", "c"),
        edge("c", "f"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    fixture.run();
    assert_eq!(fixture.order(), ["s", "b", "c", "f"]);
}

#[test]
fn router_without_a_match_fails_with_no_route() {
    let nodes = [
        agent("a"),
        node("r", "router.generic", json!({})),
        agent("b"),
    ];
    let mut conditional = edge("r", "b");
    conditional["condition"] = json!("input.topic == 'x'");
    let fixture = Fixture::new(&nodes, &[edge("a", "r"), conditional], json!({}));
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("no_route", Some("r"))
    );
    assert_eq!(fixture.order(), ["a", "r"]);
}

#[test]
fn plan_loop_ends_after_the_maximum_rounds() {
    let nodes = [
        node("l", "control.plan-loop", json!({"maxIterations": 2})),
        agent("w"),
        node("f", "control.finish", json!({})),
    ];
    let edges = [
        handle("l", "execute", "w"),
        edge("w", "l"),
        handle("l", "done", "f"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    assert_eq!(result(&fixture.run()), json!("w/normal/2"));
    assert!(
        fixture
            .lines()
            .contains(&"node_completed l done_max_iterations".to_owned())
    );
}

#[test]
fn stale_score_of_an_earlier_loop_is_not_used() {
    let judge = |id| agent_with(id, json!({"turnMode": "evaluate"}));
    let nodes = [
        node("l1", "control.plan-loop", json!({})),
        agent("w1"),
        judge("j1"),
        node("l2", "control.plan-loop", json!({"maxIterations": 2})),
        agent("w2"),
        node("f", "control.finish", json!({})),
    ];
    let edges = [
        handle("l1", "execute", "w1"),
        edge("w1", "j1"),
        edge("j1", "l1"),
        handle("l1", "done", "l2"),
        handle("l2", "execute", "w2"),
        edge("w2", "l2"),
        handle("l2", "done", "f"),
    ];
    let script = json!({"j1": [{"text": "good", "structured": {"score": 0.99}}]});
    let fixture = Fixture::new(&nodes, &edges, script);
    fixture.run();
    assert_eq!(
        fixture.order(),
        ["l1", "w1", "j1", "l1", "l2", "w2", "l2", "w2", "l2", "f"]
    );
}

#[test]
fn unusable_scores_count_as_no_evaluation() {
    let nodes = [
        node("l", "control.plan-loop", json!({"maxIterations": 4})),
        agent("w"),
        agent_with("j", json!({"turnMode": "evaluate"})),
        node("f", "control.finish", json!({})),
    ];
    let edges = [
        handle("l", "execute", "w"),
        edge("w", "j"),
        edge("j", "l"),
        handle("l", "done", "f"),
    ];
    let script = json!({"j": [
        {"structured": {"score": 7}},
        {"structured": {"score": "0.9"}},
        {"structured": {"score": 0.9, "canComplete": false}},
        {"structured": {"score": 0.9}},
    ]});
    let fixture = Fixture::new(&nodes, &edges, script);
    let end = fixture.run();
    assert_eq!(fixture.turns().len(), 8);
    assert!(
        fixture
            .lines()
            .contains(&"node_completed l done".to_owned())
    );
    let port = end.data.port(fixture.flow.find("l").unwrap(), "score");
    assert_eq!(port, Some(&json!({"score": 0.9})));
}

#[test]
fn cycle_without_end_reaches_the_recursion_limit() {
    let fixture = Fixture::new(
        &[agent("x"), agent("y")],
        &[edge("x", "y"), edge("y", "x")],
        json!({}),
    );
    let error = failure(&fixture.run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("recursion_limit", Some("x"))
    );
    assert_eq!(fixture.turns().len(), 100);
}

#[test]
fn finish_reads_json_results() {
    let nodes = [
        agent("w"),
        node("f", "control.finish", json!({"outputFormat": "json"})),
    ];
    let run = |script| result(&Fixture::new(&nodes, &[edge("w", "f")], script).run());
    assert_eq!(run(json!({"w": [{"text": "{\"a\": 1}"}]})), json!({"a": 1}));
    assert_eq!(
        run(json!({"w": [{"text": "t", "structured": {"b": 2}}]})),
        json!({"b": 2})
    );
    assert_eq!(run(json!({"w": [{"text": "no JSON"}]})), json!("no JSON"));
}
