//! Nodes of the kinds `deerflow` and `acp`, and loaders, in the real binary.

use serde_json::{Value, json};

use crate::acp::AGENT;
use crate::rig::{Rig, text};

fn flow(agent: &Value, before: &Value) -> String {
    let mut agent = agent.clone();
    agent["agentId"] = json!("worker");
    json!({
        "meta": {"schemaVersion": "2.0", "name": "One"},
        "agents": {"agentDefs": [agent]},
        "graph": {
            "startNodeId": "first",
            "nodes": [
                before,
                {"nodeId": "work", "nodeKind": "agent.main", "agentId": "worker"},
                {"nodeId": "finish", "nodeKind": "control.finish"},
            ],
            "edges": [
                {"source": "first", "target": "work"},
                {"source": "first", "sourceHandle": "data", "target": "work",
                 "targetHandle": "data", "dataEdge": true},
                {"source": "work", "target": "finish"},
            ],
        },
    })
    .to_string()
}

/// Stores a flow of one agent behind a node.
async fn store(rig: &Rig, slug: &str, agent: &Value, before: &Value) {
    let body = json!({"id": slug, "content": flow(agent, before)});
    let stored = rig.post("/api/flows", &body).await;
    assert_eq!(stored.status.as_u16(), 201, "{}", stored.text);
}

/// Runs a flow and returns the values of its thread.
async fn run(rig: &Rig, thread: &str, slug: &str, prompt: &str) -> Value {
    let wait = format!("/threads/{thread}/runs/wait");
    let assistant = format!("flow-{slug}");
    let request = json!({"assistant_id": assistant, "input": {"userPrompt": prompt}});
    rig.post(&wait, &request).await.ok()
}

fn nothing() -> Value {
    json!({"nodeId": "first", "nodeKind": "loader.input"})
}

#[tokio::test]
async fn lead_agent_in_a_node_writes_files_and_asks() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let agent = json!({
        "adapterKind": "deerflow", "toolPolicy": {"approvalRequirement": "destructive_only"},
    });
    let prompt = r#"[[tool:write_file {"description":"d","path":"/mnt/user-data/workspace/a.md","content":"kept"}]] then say done"#;
    store(&rig, "one", &agent, &nothing()).await;
    let asked = run(&rig, &thread, "one", prompt).await;
    assert!(asked["__interrupt__"][0]["value"].is_object(), "{asked}");
    let answer = json!({"assistant_id": "flow-one", "command": {"resume": "approve"}});
    let wait = format!("/threads/{thread}/runs/wait");
    let end = rig.post(&wait, &answer).await.ok();
    assert_eq!(end["result"], "done", "{end}");
    let loader = json!({"nodeId": "first", "nodeKind": "loader.work-dir"});
    let plain = json!({"adapterKind": "model"});
    store(&rig, "two", &plain, &loader).await;
    let loaded = run(&rig, &thread, "two", "then say read").await;
    assert_eq!(
        loaded["ports"]["first"]["data"][0]["path"], "a.md",
        "{loaded}"
    );
}

#[tokio::test]
async fn acp_agent_executes_a_node() {
    let section = format!("acp_agents:\n  bob: {{command: {AGENT}, description: Works.}}\n");
    let rig = Rig::with(&section).await;
    let thread = rig.thread().await;
    let agent = json!({"adapterKind": "acp", "adapterConfig": {"agent": "bob"}});
    store(&rig, "one", &agent, &nothing()).await;
    let end = run(&rig, &thread, "one", "say hello").await;
    assert!(text(&end["result"]).contains("hello"), "{end}");
    let kinds = rig.get("/api/flows/adapters").await.json().to_string();
    assert!(
        kinds.contains("\"acp\"") && kinds.contains("\"deerflow\""),
        "{kinds}"
    );
}

#[tokio::test]
async fn http_loader_needs_a_listed_host() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let config = json!({"url": "http://127.0.0.1:9/a"});
    let loader = json!({"nodeId": "first", "nodeKind": "loader.http-auth", "config": config});
    store(&rig, "one", &json!({"adapterKind": "fake"}), &loader).await;
    let request = json!({"assistant_id": "flow-one", "input": {"userPrompt": "go"}});
    let run = rig.background(&thread, &request).await;
    assert_eq!(rig.wait_for_end(&thread, &run).await, "error");
    let run = rig.get_run(&thread, &run).await.to_string();
    assert!(run.contains("flows.loader_hosts"), "{run}");
}
