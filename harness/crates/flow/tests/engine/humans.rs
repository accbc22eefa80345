//! Questions, answers, breakpoints, `goto` and external writes.

use deerflow_flow::driver::{FlowOutcome, FlowStart};
use deerflow_flow::machine::FlowMachine;
use deerflow_runtime::runs::NodeSelector;
use serde_json::{Value, json};

use crate::fixture::{Fixture, agent, edge, handle, node, result};

fn gate() -> Fixture {
    let nodes = [
        agent("draft"),
        node(
            "gate",
            "control.human",
            json!({"prompt": "Publish?", "options": ["yes", "no"]}),
        ),
        agent("publish"),
        agent("revise"),
    ];
    let edges = [
        edge("draft", "gate"),
        handle("gate", "yes", "publish"),
        handle("gate", "no", "revise"),
    ];
    Fixture::new(&nodes, &edges, json!({}))
}

fn questions(outcome: &FlowOutcome) -> Vec<Value> {
    match outcome {
        FlowOutcome::Interrupted(questions) => questions
            .iter()
            .map(|question| question.value.clone())
            .collect(),
        other => panic!("no question: {other:?}"),
    }
}

#[test]
fn question_has_prompt_options_and_context() {
    let end = gate().run();
    let expected = json!({
        "type": "flow_human", "nodeId": "gate", "prompt": "Publish?", "options": ["yes", "no"],
        "context": "draft/normal/1",
    });
    assert_eq!(questions(&end.outcome), [expected]);
}

#[test]
fn answer_takes_one_way_only() {
    let fixture = gate();
    let end = fixture.run();
    let end = fixture.resume(end, json!("no"));
    assert_eq!(result(&end), json!("revise/normal/1"));
    assert_eq!(fixture.order(), ["draft", "gate", "revise"]);
    assert!(
        fixture
            .turn("revise")
            .user_prompt
            .contains("draft/normal/1")
    );
}

#[test]
fn other_answer_asks_again_and_names_the_options() {
    let fixture = gate();
    let end = fixture.run();
    let FlowOutcome::Interrupted(first) = end.outcome.clone() else {
        panic!()
    };
    let end = fixture.resume(end, json!("maybe"));
    let FlowOutcome::Interrupted(second) = &end.outcome else {
        panic!()
    };
    assert_ne!(first[0].id, second[0].id);
    assert_eq!(
        second[0].value["error"],
        json!("answer with one of: yes, no")
    );
    let end = fixture.resume(end, json!({"gate": "yes"}));
    assert_eq!(result(&end), json!("publish/normal/1"));
}

#[test]
fn free_answer_reaches_the_response_port() {
    let nodes = [
        node("ask", "control.human", json!({"prompt": "Why?"})),
        agent("w"),
    ];
    let fixture = Fixture::new(&nodes, &[handle("ask", "response", "w")], json!({}));
    let end = fixture.run();
    let end = fixture.resume(end, json!("because"));
    assert_eq!(end.data.port(0, "response"), Some(&json!("because")));
    assert!(fixture.turn("w").user_prompt.contains("because"));
}

#[test]
fn several_questions_take_answers_by_node_or_id() {
    let ask = |id| {
        node(
            id,
            "control.human",
            json!({"prompt": "?", "options": ["go"]}),
        )
    };
    let nodes = [
        node("s", "control.parallel", json!({})),
        ask("h1"),
        ask("h2"),
        agent("w"),
    ];
    let edges = [
        edge("s", "h1"),
        edge("s", "h2"),
        handle("h1", "go", "w"),
        handle("h2", "go", "w"),
    ];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    let end = fixture.run();
    let FlowOutcome::Interrupted(open) = end.outcome.clone() else {
        panic!()
    };
    assert_eq!(open.len(), 2);
    let mut machine = end.machine.clone();
    assert_eq!(
        machine.answer(json!("go")).unwrap_err().code,
        "resume_invalid"
    );
    assert_eq!(
        machine.answer(json!({"ghost": "go"})).unwrap_err().code,
        "resume_invalid"
    );
    let end = fixture.resume(end, json!({"h2": "go"}));
    assert_eq!(questions(&end.outcome).len(), 1);
    let end = fixture.resume(end, json!({open[0].id.as_str(): "go"}));
    assert_eq!(result(&end), json!("w/normal/1"));
    assert_eq!(fixture.order(), ["s", "h2", "h1", "w"]);
}

#[test]
fn turn_with_a_question_resumes_with_the_answer() {
    let script = json!({"x": [
        {"status": "interrupted", "interrupt": {"q": 1}},
        {"text": "answered"},
    ]});
    let fixture = Fixture::new(&[agent("x")], &[], script);
    let end = fixture.run();
    assert_eq!(questions(&end.outcome), [json!({"q": 1})]);
    let end = fixture.resume(end, json!(42));
    assert_eq!(result(&end), json!("answered"));
    assert_eq!(fixture.turn("x").answer, Some(json!(42)));
}

#[test]
fn breakpoints_stop_once_and_resume() {
    let mut fixture = Fixture::new(
        &[agent("x"), agent("y"), agent("z")],
        &[edge("x", "y"), edge("y", "z")],
        json!({}),
    );
    fixture.options.bounds.interrupt_before = NodeSelector::Named(vec!["y".into()]);
    fixture.options.bounds.interrupt_after = NodeSelector::Named(vec!["y".into()]);
    let end = fixture.run();
    assert_eq!(end.outcome, FlowOutcome::Breakpoint(1));
    let end = fixture.resume(end, Value::Null);
    assert_eq!(end.outcome, FlowOutcome::Breakpoint(1));
    assert_eq!(fixture.order(), ["x", "y"]);
    assert_eq!(end.machine.next_nodes(), [2]);
    result(&fixture.resume(end, Value::Null));
    assert_eq!(fixture.order(), ["x", "y", "z"]);
}

#[test]
fn goto_runs_one_node_and_what_follows() {
    let fixture = Fixture::new(
        &[agent("x"), agent("y"), agent("z")],
        &[edge("x", "y"), edge("y", "z")],
        json!({}),
    );
    let end = fixture.run();
    let mut machine = end.machine;
    machine.begin_run(0);
    assert_eq!(
        machine
            .goto(&fixture.flow, &end.data, &["ghost"])
            .unwrap_err()
            .code,
        "resume_invalid"
    );
    machine.goto(&fixture.flow, &end.data, &["y"]).unwrap();
    fixture.start(FlowStart::Resumed(Box::new(machine), Box::new(end.data)));
    assert_eq!(fixture.order(), ["x", "y", "z", "y", "z"]);
    assert_eq!(fixture.turn("y").visit, 2);
}

#[test]
fn external_write_follows_the_edges_of_the_node() {
    let fixture = Fixture::new(&[agent("x"), agent("y")], &[edge("x", "y")], json!({}));
    let end = fixture.run();
    let (mut machine, mut data) = (end.machine, end.data);
    machine.begin_run(0);
    let ports = json!({"result": "by hand"}).as_object().cloned().unwrap();
    machine
        .write_as(&fixture.flow, &mut data, "x", ports)
        .unwrap();
    let unknown = json!({"nope": 1}).as_object().cloned().unwrap();
    assert!(
        machine
            .write_as(&fixture.flow, &mut data, "x", unknown)
            .is_err()
    );
    fixture.start(FlowStart::Resumed(Box::new(machine), Box::new(data)));
    assert_eq!(fixture.order(), ["x", "y", "y"]);
    assert!(fixture.turn("y").user_prompt.contains("by hand"));
}

#[test]
fn dry_run_answers_by_the_first_option() {
    let mut fixture = gate();
    fixture.options.dry_run = true;
    assert_eq!(result(&fixture.run()), json!("publish/normal/1"));
}

#[test]
fn machine_of_another_content_is_refused() {
    let fixture = gate();
    let end = fixture.run();
    let mut saved = json!(end.machine);
    saved["content_hash"] = json!("other");
    let restored = FlowMachine::restore(&fixture.flow, Default::default(), saved.clone());
    assert_eq!(restored.unwrap_err().code, "state_unreadable");
    saved["content_hash"] = json!(fixture.flow.content_hash);
    saved["active"][0]["node"] = json!(99);
    assert!(FlowMachine::restore(&fixture.flow, Default::default(), saved).is_err());
}
