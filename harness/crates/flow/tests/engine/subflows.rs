//! Sub-flows.

use deerflow_flow::driver::FlowOutcome;
use serde_json::json;

use crate::fixture::{Fixture, agent, compiled, document, edge, failure, handle, node, result};

fn outer(inner: &serde_json::Value, script: serde_json::Value) -> Fixture {
    let nodes = [
        agent("x"),
        node("sub", "control.subflow", json!({"flowId": "inner"})),
        agent("y"),
    ];
    let mut fixture = Fixture::new(&nodes, &[edge("x", "sub"), edge("sub", "y")], script);
    fixture.subflows.insert("inner".to_owned(), compiled(inner));
    fixture
}

#[test]
fn result_of_a_subflow_is_the_output_of_its_node() {
    let inner = document(&[agent("i")], &[]);
    let fixture = outer(&inner, json!({}));
    let end = fixture.run();
    assert_eq!(end.data.port(1, "result"), Some(&json!("i/normal/1")));
    assert_eq!(fixture.order(), ["x", "sub", "y"]);
    assert!(fixture.turn("i").user_prompt.contains("x/normal/1"));
    assert!(fixture.turn("y").user_prompt.contains("i/normal/1"));
    assert!(fixture.lines().contains(&"node_completed sub/i".to_owned()));
    assert_eq!(end.machine.ledger().run.turns, 3);
    let ends = fixture
        .lines()
        .iter()
        .filter(|line| line.starts_with("run_"))
        .count();
    assert_eq!(ends, 2);
}

#[test]
fn failure_of_a_subflow_has_its_code_and_the_outer_node() {
    let inner = document(&[agent("i")], &[]);
    let script = json!({"i": [{"status": "failed", "error": {"code": "E9"}}]});
    let error = failure(&outer(&inner, script).run());
    assert_eq!(
        (error.code.as_str(), error.node_id.as_deref()),
        ("E9", Some("sub"))
    );
}

#[test]
fn missing_subflow_fails_the_node() {
    let mut fixture = outer(&document(&[agent("i")], &[]), json!({}));
    fixture.subflows.clear();
    assert_eq!(failure(&fixture.run()).code, "subflow_not_found");
}

#[test]
fn question_within_a_subflow_resumes_there() {
    let inner = document(
        &[
            agent("i"),
            node(
                "h",
                "control.human",
                json!({"prompt": "?", "options": ["go"]}),
            ),
            agent("k"),
        ],
        &[edge("i", "h"), handle("h", "go", "k")],
    );
    let fixture = outer(&inner, json!({}));
    let end = fixture.run();
    let FlowOutcome::Interrupted(questions) = &end.outcome else {
        panic!("{:?}", end.outcome)
    };
    assert_eq!(questions[0].node, "sub/h");
    let end = fixture.resume(end, json!("go"));
    assert_eq!(result(&end), json!("y/normal/1"));
    assert_eq!(end.data.port(1, "result"), Some(&json!("k/normal/1")));
    let turns: Vec<String> = fixture
        .turns()
        .into_iter()
        .map(|turn| turn.node_id)
        .collect();
    assert_eq!(turns, ["x", "i", "k", "y"]);
}
