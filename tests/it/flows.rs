//! Flows as assistants of the real binary: stored over HTTP, run, interrupted, cancelled, and
//! continued after a power cut.

use serde_json::{Value, json};

use crate::rig::{Rig, body, text, until};

/// Two model nodes of two agents in a row.
pub(crate) const CHAIN: &str = "
meta: {schemaVersion: '2.0', name: Chain}
agents:
  agentDefs:
    - {agentId: first, adapterKind: model}
    - {agentId: second, adapterKind: model, modelProfile: {systemPrompt: Go on.}}
graph:
  startNodeId: draft
  nodes:
    - {nodeId: draft, nodeKind: agent.sub, agentId: first, config: {userPrompt: then say drafted}}
    - {nodeId: gate, nodeKind: control.human, config: {prompt: Continue?, options: ['yes', 'no']}}
    - {nodeId: polish, nodeKind: agent.main, agentId: second}
    - {nodeId: finish, nodeKind: control.finish}
  edges:
    - {source: draft, target: gate}
    - {source: gate, sourceHandle: 'yes', target: polish}
    - {source: gate, sourceHandle: 'no', target: finish}
    - {source: polish, target: finish}
";

/// Stores a flow of the user.
pub(crate) async fn store(rig: &Rig, slug: &str, flow: &str) {
    let stored = rig
        .post("/api/flows", &json!({"id": slug, "content": flow}))
        .await;
    assert_eq!(stored.status.as_u16(), 201, "{}", stored.text);
}

fn asking(assistant: &str, input: Value) -> Value {
    json!({"assistant_id": assistant, "input": input})
}

/// Returns the flow of [`CHAIN`] without its question. Its second node does not end by itself.
pub(crate) fn held() -> String {
    let flow = CHAIN.replace(
        "{source: draft, target: gate}",
        "{source: draft, target: polish}",
    );
    let flow = flow.replace(
        "nodeId: gate, nodeKind: control.human",
        "nodeId: gate, nodeKind: control.parallel",
    );
    let held = "agentId: second, config: {userPrompt: '[[slow 40x1ms]][[hold 5]] on'}}";
    let flow = flow.replace("agentId: second}", held);
    let edges = flow.find("    - {source: gate").expect("an edge");
    format!(
        "{}    - {{source: polish, target: finish}}\n",
        &flow[..edges]
    )
}

#[tokio::test]
async fn stored_flow_asks_and_continues_as_an_assistant() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let thread = rig.thread().await;
    let wait = format!("/threads/{thread}/runs/wait");
    let start = asking("flow-chain", json!({"userPrompt": "then say polished"}));
    let asked = rig.post(&wait, &start).await.ok();
    let question = &asked["__interrupt__"][0]["value"];
    assert_eq!(question["options"], json!(["yes", "no"]), "{asked}");
    let answer = json!({"assistant_id": "flow-chain", "command": {"resume": "yes"}});
    let end = rig.post(&wait, &answer).await.ok();
    assert_eq!(end["visits"]["draft"], 1, "{end}");
    let messages = end["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 2, "{end}");
    assert_eq!(messages[1]["name"], "Chain");
    let unknown = rig.post(&wait, &asking("flow-other", json!({}))).await;
    assert_eq!(unknown.status.as_u16(), 422, "{}", unknown.text);
}

#[tokio::test]
async fn flow_continues_after_a_power_cut_at_the_node_that_ran() {
    let mut rig = Rig::start().await;
    store(&rig, "chain", &held()).await;
    let thread = rig.thread().await;
    let prompt = json!({"userPrompt": "go"});
    let run = rig.background(&thread, &asking("flow-chain", prompt)).await;
    until("the second node", async || {
        let state = rig.get(&format!("/threads/{thread}/state")).await.json();
        (state["next"] == json!(["polish"])).then_some(())
    })
    .await;
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("healthy again");
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    let values = rig.values(&thread).await;
    assert_eq!(
        values["visits"],
        json!({"draft": 1, "polish": 1, "finish": 1})
    );
}

#[tokio::test]
async fn cancelled_flow_ends_at_once_and_frees_its_thread() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let thread = rig.thread().await;
    let prompt = json!({"userPrompt": "[[slow 1000x10ms]]"});
    let mut stream = rig.stream(&thread, &asking("flow-chain", prompt)).await;
    let metadata = stream
        .next_named("metadata")
        .await
        .expect("frame")
        .expect("open");
    let run = text(&metadata.json().expect("json")["run_id"]).to_owned();
    let cancel = format!("/api/threads/{thread}/runs/{run}/cancel?wait=1");
    assert_eq!(rig.post(&cancel, &json!({})).await.status.as_u16(), 204);
    assert_eq!(rig.get_run(&thread, &run).await["status"], "interrupted");
    rig.run(&thread, &body("then say free")).await;
}
