//! Limits of roles that hold beyond the lead agent: commands in subagents and flows, and models of
//! nodes.

use serde_json::{Value, json};

use crate::acp::AGENT;
use crate::rig::browser::Browser;
use crate::rig::{list, text};
use crate::roles::{Roles, run};

/// Tools through which an agent runs commands.
const COMMAND_TOOLS: [&str; 2] = ["bash", "invoke_acp_agent"];

/// Starts a gateway with commands, an ACP agent, and these rules of users.
async fn with_commands(rules: &str) -> Roles {
    let bash = "  - {name: bash, group: files, use: sandbox.bash}\nsandbox: {use: local, allow_host_bash: true}\n";
    let acp = format!("acp_agents:\n  bob: {{command: {AGENT}, description: Works.}}\n");
    Roles::configured(rules, |config| {
        config.replace("sandbox: {use: local}\n", bash) + &acp
    })
    .await
}

/// Stores a flow of one node as the user.
async fn store(browser: &mut Browser, slug: &str, agent: &Value) {
    let mut agent = agent.clone();
    agent["agentId"] = json!("worker");
    let flow = json!({
        "meta": {"schemaVersion": "2.0", "name": "One"},
        "agents": {"agentDefs": [agent]},
        "graph": {
            "startNodeId": "work",
            "nodes": [
                {"nodeId": "work", "nodeKind": "agent.main", "agentId": "worker"},
                {"nodeId": "finish", "nodeKind": "control.finish"},
            ],
            "edges": [{"source": "work", "target": "finish"}],
        },
    });
    let body = json!({"id": slug, "content": flow.to_string()});
    let stored = browser.post("/api/flows", body).await;
    assert_eq!(stored.status.as_u16(), 201, "{}", stored.text);
}

/// Runs a flow on a new thread and returns the values of its end.
async fn run_flow(browser: &mut Browser, slug: &str, prompt: &str) -> Value {
    let thread = browser.post("/threads", json!({})).await.ok();
    let path = format!("/threads/{}/runs/wait", text(&thread["thread_id"]));
    let input = json!({"userPrompt": prompt});
    let body = json!({"assistant_id": format!("flow-{slug}"), "input": input});
    browser.post(&path, body).await.json()
}

/// Returns the results of tool calls in a thread, as one text.
fn tool_results(values: &Value) -> String {
    let results = list(&values["messages"]).iter();
    let results = results.filter(|message| message["type"] == "tool");
    results.map(Value::to_string).collect()
}

#[tokio::test]
async fn role_without_commands_runs_none() {
    let mut roles = with_commands("sandbox: {allow: false}").await;
    let marker = roles.gateway.home().join("marker");
    let touch = json!({"command": format!("touch {}", marker.display()), "description": "d"});
    let call = format!("[[ghost:bash {touch}]]");
    let values = run(&mut roles.ann, &format!("{call} then say done"), json!({})).await;
    assert!(
        tool_results(&values).to_lowercase().contains("error"),
        "{values}"
    );
    let acp = json!({"agent": "bob", "prompt": "x"});
    let call_acp = format!("[[ghost:invoke_acp_agent {acp}]] then say done");
    let values = run(&mut roles.ann, &call_acp, json!({})).await;
    assert!(
        tool_results(&values).to_lowercase().contains("error"),
        "{values}"
    );
    for kind in ["general-purpose", "bash"] {
        let prompt = format!("{call} then say done");
        let task = json!({"description": "d", "prompt": prompt, "subagent_type": kind});
        let delegated = format!("[[tool:task {task}]] then say done");
        run(
            &mut roles.ann,
            &delegated,
            json!({"subagent_enabled": true}),
        )
        .await;
    }
    store(&mut roles.ann, "agent", &json!({"adapterKind": "deerflow"})).await;
    run_flow(&mut roles.ann, "agent", &format!("{call} then say done")).await;
    for request in roles.model.requests() {
        for tool in COMMAND_TOOLS {
            let offered = request.tools.iter().any(|name| name == tool);
            assert!(!offered, "{tool} was offered");
        }
    }
    assert!(!marker.exists(), "a command ran");
    let bob = json!({"adapterKind": "acp", "adapterConfig": {"agent": "bob"}});
    store(&mut roles.ann, "bob", &bob).await;
    let refused = run_flow(&mut roles.ann, "bob", "say x").await.to_string();
    assert!(refused.contains("may not run commands"), "{refused}");
    run(&mut roles.root, &call.replace("ghost", "tool"), json!({})).await;
    assert!(marker.exists(), "no command of the administrator ran");
    for tool in COMMAND_TOOLS {
        assert!(roles.offered().iter().any(|name| name == tool), "{tool}");
    }
}

#[tokio::test]
async fn models_of_other_roles_are_replaced_in_nodes() {
    let mut roles = Roles::configured("models: {allow: [second]}", |config| config).await;
    let agents = [
        json!({"adapterKind": "model"}),
        json!({"adapterKind": "model", "modelProfile": {"model": "fake"}}),
        json!({"adapterKind": "model", "adapterConfig": {"modelName": "fake"}}),
        json!({"adapterKind": "model", "adapterConfig": {"modelName": "second"}}),
        json!({"adapterKind": "deerflow", "adapterConfig": {"modelName": "fake"}}),
    ];
    for (n, agent) in agents.iter().enumerate() {
        let slug = format!("n{n}");
        store(&mut roles.ann, &slug, agent).await;
        let end = run_flow(&mut roles.ann, &slug, "then say done").await;
        assert_eq!(end["result"], "done", "{agent} {end}");
        assert_eq!(roles.last_model().as_deref(), Some("other"), "{agent}");
    }
    store(&mut roles.root, "of-root", &agents[1]).await;
    run_flow(&mut roles.root, "of-root", "then say done").await;
    assert_eq!(roles.last_model().as_deref(), Some("scripted-1"));
}
