//! Input of nodes: ports, default values, previous results and the parts of prompts.

use deerflow_flow::machine::RunInput;
use serde_json::{Value, json};

use crate::fixture::{Fixture, agent, data, edge, node};

fn with_ports(id: &str, ports: Value) -> Value {
    let mut node = agent(id);
    node["inputPorts"] = ports;
    node
}

#[test]
fn default_value_fills_an_unset_port() {
    let ports = json!([{"portId": "tone", "dataType": "string", "defaultValue": "dry"}]);
    let fixture = Fixture::new(&[with_ports("x", ports)], &[], json!({}));
    fixture.run();
    let turn = fixture.turn("x");
    assert_eq!(turn.input["tone"], json!("dry"));
    assert!(turn.user_prompt.contains("tone:\ndry"));
}

#[test]
fn text_is_in_the_prompt_once() {
    let nodes = [agent("x"), agent("y")];
    let edges = [edge("x", "y"), data("x", "result", "y", "data")];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    fixture.run();
    assert_eq!(
        fixture.turn("y").user_prompt.matches("x/normal/1").count(),
        1
    );
}

#[test]
fn loader_publishes_the_input_without_prompt_and_messages() {
    let nodes = [node("l", "loader.input", json!({})), agent("x")];
    let edges = [edge("l", "x"), data("l", "data", "x", "data")];
    let fixture = Fixture::new(&nodes, &edges, json!({}));
    let input = RunInput::read(json!({"userPrompt": "T", "topic": "t", "messages": []})).unwrap();
    fixture.start(deerflow_flow::driver::FlowStart::Fresh(input));
    assert_eq!(fixture.turn("x").input["data"], json!({"topic": "t"}));
}

#[test]
fn prompt_node_replaces_or_precedes_the_run_prompt() {
    let prompt = |merge: &str| {
        let config = json!({"promptText": "FIXED", "mergeMode": merge});
        let nodes = [node("p", "input.prompt", config), agent("x")];
        let edges = [edge("p", "x"), data("p", "prompt", "x", "prompt")];
        let fixture = Fixture::new(&nodes, &edges, json!({}));
        fixture.run();
        fixture.turn("x").user_prompt
    };
    assert_eq!(prompt("append"), "T\n\nFIXED");
    assert_eq!(prompt("prepend"), "FIXED\n\nT");
    assert_eq!(prompt("replace"), "FIXED");
}

#[test]
fn empty_input_gets_the_fixed_sentence() {
    let fixture = Fixture::new(&[agent("x")], &[], json!({}));
    fixture.start(deerflow_flow::driver::FlowStart::Fresh(RunInput::default()));
    assert!(!fixture.turn("x").user_prompt.is_empty());
}

#[test]
fn input_is_read_from_messages_or_refused() {
    let read = |value: Value| {
        RunInput::read(value)
            .map(|input| input.user_prompt().to_owned())
            .map_err(|error| error.code)
    };
    let messages = json!({"messages": [
        {"role": "user", "content": "first"},
        {"type": "human", "content": [{"type": "text", "text": "last"}]},
        {"role": "assistant", "content": "no"},
    ]});
    assert_eq!(read(messages), Ok("last".to_owned()));
    assert_eq!(read(json!({"userPrompt": 3})).unwrap_err(), "input_invalid");
    assert_eq!(read(json!([1])).unwrap_err(), "input_invalid");
    let large = json!({"userPrompt": "x", "rest": "y".repeat(1 << 20)});
    assert_eq!(read(large).unwrap_err(), "input_invalid");
}

#[test]
fn segments_name_their_sources() {
    let mut document = crate::fixture::document(&[agent("x")], &[]);
    document["agents"]["agentDefs"][0]["modelProfile"] = json!({"systemPrompt": "SYSTEM"});
    document["graph"]["nodes"][0]["config"] = json!({"userPrompt": "DIRECTIVE"});
    let fixture = Fixture::of(&document, json!({}));
    fixture.run();
    let segments = json!(*fixture.turn("x").segments);
    let expected = json!([
        {"scope": "agent-body", "label": "a", "content": "SYSTEM"},
        {"scope": "node-config", "label": "userPrompt", "content": "DIRECTIVE"},
        {"scope": "run-input", "label": "userPrompt", "content": "T"},
    ]);
    assert_eq!(segments, expected);
}
