//! Flows as agents of the runtime, on its in-memory stores.

#[path = "flow_agent/bench.rs"]
mod bench;
#[path = "flow_agent/histories.rs"]
mod histories;

use deerflow_runtime::agent::Agent;
use deerflow_runtime::runs::{RunInput, WaitOutcome};
use serde_json::json;

use self::bench::{Bench, values};

/// Writes, asks a person, and publishes or revises.
const APPROVAL: &str = "
meta: {schemaVersion: '2.0', name: Approval}
agents: {agentDefs: [{agentId: writer, adapterKind: fake}]}
graph:
  startNodeId: draft
  nodes:
    - {nodeId: draft, nodeKind: agent.sub, agentId: writer}
    - {nodeId: gate, nodeKind: control.human, config: {prompt: Publish?, options: [publish, revise]}}
    - {nodeId: send, nodeKind: agent.sub, agentId: writer}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: draft, target: gate}
    - {source: gate, sourceHandle: publish, target: send}
    - {source: gate, sourceHandle: revise, target: draft}
    - {source: send, target: finish}
";

/// Two nodes side by side, of which one fails, and a join.
const PAIR: &str = "
meta: {schemaVersion: '2.0', name: Pair}
agents: {agentDefs: [{agentId: a, adapterKind: fake}, {agentId: b, adapterKind: fake}]}
runtime: {maxConcurrency: 2}
graph:
  startNodeId: split
  nodes:
    - {nodeId: split, nodeKind: control.parallel}
    - {nodeId: left, nodeKind: agent.sub, agentId: a}
    - {nodeId: right, nodeKind: agent.sub, agentId: b}
    - {nodeId: join, nodeKind: control.join}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: split, target: left}
    - {source: split, target: right}
    - {source: left, target: join}
    - {source: right, target: join}
    - {source: join, target: finish}
    - {source: left, sourceHandle: result, target: finish, targetHandle: result, dataEdge: true}
";

#[tokio::test]
async fn result_of_a_flow_is_an_answer_of_the_thread() {
    let bench = Bench::new(PAIR, json!({}));
    let end = values(
        bench
            .send(json!({"userPrompt": "Compare", "topic": "x"}))
            .await,
    );
    let messages = end["messages"].as_array().expect("valid");
    assert_eq!(messages.len(), 2, "{end}");
    assert_eq!(messages[1]["content"], "left/normal/1");
    assert_eq!(messages[1]["name"], "Pair");
    assert_eq!(end["title"], "Compare");
    assert_eq!(end["input"], json!({"userPrompt": "Compare", "topic": "x"}));
    assert_eq!(end["result"], "left/normal/1");
    assert_eq!(end["outputs"]["right"]["text"], "right/normal/1");
    assert_eq!(bench.turns(), ["left", "right"]);
}

#[tokio::test]
async fn question_interrupts_and_an_answer_continues() {
    let bench = Bench::new(APPROVAL, json!({}));
    let asked = values(bench.send(json!({"userPrompt": "Write"})).await);
    let question = &asked["__interrupt__"][0]["value"];
    assert_eq!(question["type"], "flow_human");
    assert_eq!(question["options"], json!(["publish", "revise"]));
    let revised = values(bench.run(RunInput::Resume(json!("revise"))).await);
    assert_eq!(revised["__interrupt__"][0]["value"]["nodeId"], "gate");
    let end = values(bench.run(RunInput::Resume(json!("publish"))).await);
    assert_eq!(end["result"], "send/normal/1");
    assert_eq!(bench.turns(), ["draft", "draft", "send"]);
}

#[tokio::test]
async fn failed_node_is_repeated_without_its_siblings() {
    let failure = json!({"status": "failed", "error": {
        "code": "E1", "category": "model", "retryable": false, "message": "no capacity"
    }});
    let bench = Bench::new(PAIR, json!({"right": [failure, {"text": "second"}]}));
    let WaitOutcome::Failed { name, message, .. } = bench.send(json!({"userPrompt": "x"})).await
    else {
        panic!("the run must fail")
    };
    assert_eq!(name, "E1");
    assert!(
        message.contains("\"right\"") && message.contains("no capacity"),
        "{message}"
    );
    let end = values(bench.run(RunInput::Continue).await);
    assert_eq!(end["outputs"]["right"]["text"], "second");
    assert_eq!(bench.turns(), ["left", "right", "right"]);
}

#[tokio::test]
async fn new_input_clears_the_values_of_the_former_run() {
    let bench = Bench::new(PAIR, json!({}));
    values(bench.send(json!({"userPrompt": "one", "topic": "x"})).await);
    let end = values(bench.send(json!({"userPrompt": "two"})).await);
    assert_eq!(end["input"], json!({"userPrompt": "two"}));
    assert_eq!(end["visits"]["left"], 1);
    assert_eq!(end["messages"].as_array().expect("valid").len(), 4);
}

#[test]
fn input_that_is_no_text_is_refused_with_its_place() {
    let bench = Bench::new(PAIR, json!({}));
    let sent = json!({"userPrompt": 1})
        .as_object()
        .cloned()
        .expect("valid");
    let error = bench.agent.read_input(sent).expect_err("refused");
    assert_eq!(error.to_string(), "userPrompt: userPrompt must be text");
}

#[tokio::test(start_paused = true)]
async fn silent_turn_ends_at_its_own_limit() {
    let flow = PAIR.replace(
        "{agentId: b, adapterKind: fake}",
        "{agentId: b, adapterKind: fake, timeouts: {turnMs: 1200000}}",
    );
    let bench = Bench::new(&flow, json!({"right": [{"hang": true}]}));
    let WaitOutcome::Failed { name, message, .. } = bench.send(json!({"userPrompt": "x"})).await
    else {
        panic!("the run must fail")
    };
    assert_eq!(name, "turn_timeout", "{message}");
}
