//! Flows as clients see them before a run: schemas, drawings, inputs, and versions that change.

use serde_json::{Value, json};

use crate::flows::{CHAIN, store};
use crate::rig::{Rig, text};

const OUTER: &str = "
meta: {schemaVersion: '2.0', name: Outer}
agents: {agentDefs: []}
graph:
  startNodeId: call
  nodes:
    - {nodeId: call, nodeKind: control.subflow, config: {flowId: chain}}
    - {nodeId: finish, nodeKind: control.finish}
  edges: [{source: call, target: finish}]
";

/// Returns the id of the assistant that runs a flow.
async fn assistant(rig: &Rig, graph: &str) -> String {
    let found = rig
        .post("/assistants/search", &json!({"graph_id": graph}))
        .await
        .ok();
    text(&found[0]["assistant_id"]).to_owned()
}

#[tokio::test]
async fn schemas_of_a_flow_describe_its_input_and_its_nodes() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let id = assistant(&rig, "flow-chain").await;
    let schemas = rig.get(&format!("/assistants/{id}/schemas")).await.ok();
    let input = &schemas["input_schema"]["properties"];
    assert_eq!(input["userPrompt"]["type"], "string", "{schemas}");
    assert!(input["messages"].is_object() && input["ports"].is_null());
    let state = &schemas["state_schema"]["properties"];
    let ports = &state["ports"]["properties"];
    assert_eq!(
        ports["draft"]["properties"]["result"]["type"], "string",
        "{ports}"
    );
    assert_eq!(state["visits"]["properties"]["polish"]["type"], "integer");
    assert!(schemas["output_schema"]["properties"]["result"].is_object());
}

#[tokio::test]
async fn drawing_expands_sub_flows_and_lists_them() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    store(&rig, "outer", OUTER).await;
    let id = assistant(&rig, "flow-outer").await;
    let graph = async |xray: &str| {
        let path = format!("/assistants/{id}/graph?xray={xray}");
        rig.get(&path).await.ok()
    };
    let plain = graph("false").await;
    assert_eq!(plain["nodes"][1]["id"], "call", "{plain}");
    assert_eq!(plain["nodes"][1]["data"]["kind"], "control.subflow");
    let deep = graph("true").await;
    let ids: Vec<&str> = deep["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| text(&node["id"]))
        .collect();
    assert!(
        ids.contains(&"call:draft") && !ids.contains(&"call"),
        "{ids:?}"
    );
    let draft = deep["nodes"].as_array().expect("nodes").iter();
    let draft = draft.clone().find(|node| node["id"] == "call:draft");
    assert_eq!(draft.expect("a node")["data"]["agentId"], "first");
    let edges = deep["edges"].as_array().expect("edges");
    assert!(edges.contains(&json!({"source": "__start__", "target": "call:draft"})));
    assert!(edges.contains(&json!({"source": "call:finish", "target": "finish"})));
    assert_eq!(graph("1").await, deep);
    for xray in ["0", "-1", "maybe"] {
        let path = format!("/assistants/{id}/graph?xray={xray}");
        assert_eq!(rig.get(&path).await.status.as_u16(), 422, "{xray}");
    }
    let inner = rig.get(&format!("/assistants/{id}/subgraphs")).await.ok();
    assert_eq!(inner["call"]["graph_id"], "flow-chain", "{inner}");
    let one = format!("/assistants/{id}/subgraphs/call?recurse=true");
    assert_eq!(rig.get(&one).await.ok(), inner);
    let none = format!("/assistants/{id}/subgraphs/other");
    assert_eq!(rig.get(&none).await.ok(), json!({}));
}

#[tokio::test]
async fn input_of_a_wrong_type_is_422_and_nothing_is_stored() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let thread = rig.thread().await;
    let path = format!("/threads/{thread}/runs");
    for (input, place) in [
        (json!({"userPrompt": 7}), "userPrompt"),
        (json!({"userPrompt": ["a"]}), "userPrompt"),
        (json!({"messages": 7}), "messages"),
    ] {
        let sent = json!({"assistant_id": "flow-chain", "input": input});
        let refused = rig.post(&path, &sent).await;
        assert_eq!(refused.status.as_u16(), 422, "{}", refused.text);
        let at = format!("body[\"input\"][\"{place}\"]");
        let detail = refused.json()["detail"].to_string().replace("\\\"", "\"");
        assert!(detail.contains(&at), "{detail}");
    }
    let large = json!({"assistant_id": "flow-chain", "input": {"data": "x".repeat(1 << 20)}});
    assert_eq!(rig.post(&path, &large).await.status.as_u16(), 422);
    assert_eq!(rig.get(&path).await.ok(), json!([]));
}

#[tokio::test]
async fn invalid_flow_is_refused_before_a_run_is_stored() {
    let rig = Rig::start().await;
    let broken = CHAIN.replace("agentId: second}", "agentId: ghost}");
    let body = json!({"id": "broken", "content": broken});
    let refused = rig.post("/api/flows", &body).await;
    assert_eq!(refused.status.as_u16(), 422, "{}", refused.text);
    assert_eq!(refused.json()["detail"][0]["code"], "agent_not_found");
    let thread = rig.thread().await;
    let path = format!("/threads/{thread}/runs");
    let run = json!({"assistant_id": "flow-broken", "input": {"userPrompt": "go"}});
    let unknown = rig.post(&path, &run).await;
    assert!(
        matches!(unknown.status.as_u16(), 404 | 422),
        "{}",
        unknown.text
    );
    assert_eq!(rig.get(&path).await.ok(), json!([]));
}

#[tokio::test]
async fn waiting_thread_goes_on_with_the_content_it_began_with() {
    let rig = Rig::start().await;
    store(&rig, "chain", CHAIN).await;
    let mut threads = Vec::new();
    for _ in 0..2 {
        let thread = rig.thread().await;
        let ask = json!({"assistant_id": "flow-chain", "input": {"userPrompt": "then say old"}});
        let asked = rig
            .post(&format!("/threads/{thread}/runs/wait"), &ask)
            .await;
        assert_eq!(asked.ok()["__interrupt__"][0]["value"]["nodeId"], "gate");
        threads.push(thread);
    }
    let answered = async |thread: &str| -> Value {
        let answer = json!({"assistant_id": "flow-chain", "command": {"resume": "yes"}});
        let path = format!("/threads/{thread}/runs/wait");
        rig.post(&path, &answer).await.ok()
    };
    let changed = CHAIN
        .replace("polish", "rewrite")
        .replace("name: Chain", "name: Changed");
    let put = rig
        .put("/api/flows/chain", &json!({"content": changed}))
        .await;
    assert!(put.status.is_success(), "{}", put.text);
    let end = answered(&threads[0]).await;
    assert_eq!(end["visits"]["polish"], 1, "{end}");
    assert_eq!(rig.delete("/api/flows/chain").await.status.as_u16(), 204);
    let end = answered(&threads[1]).await;
    assert_eq!(end["visits"]["polish"], 1, "{end}");
    assert_eq!(end["messages"][1]["name"], "Chain");
    let thread = rig.thread().await;
    let ask = json!({"assistant_id": "flow-chain", "input": {"userPrompt": "go"}});
    let refused = rig.post(&format!("/threads/{thread}/runs"), &ask).await;
    assert!(
        matches!(refused.status.as_u16(), 404 | 422),
        "{}",
        refused.text
    );
}
