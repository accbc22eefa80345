//! A project of AgentsFlow's shape: its folder `.agents-flow` and its flows are used as they are.

use std::path::Path;

use harness::testkit::skill_archives::compressed;
use reqwest::Method;
use serde_json::{Value, json};

use crate::flow_examples::with_flows;
use crate::rig::{HttpResponse, Rig};

const PROJECT: &str = "tests/support/agentsflow_project";
const IDS: [&str; 3] = ["agents-flow-flow", "apps-flow", "packages-flow"];

/// Returns the files below a folder with their paths relative to it.
pub(crate) fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                let relative = path.strip_prefix(folder).expect("a file of the folder");
                files.push((relative.to_string_lossy().into_owned(), bytes));
            }
        }
    }
    files
}

async fn import(rig: &Rig, bytes: Vec<u8>) -> HttpResponse {
    let request = rig
        .request(Method::POST, "/api/flows/import?replace=true")
        .header("content-type", "application/zip")
        .body(bytes);
    HttpResponse::of(request).await
}

fn ids(flows: &Value) -> Vec<&str> {
    let flows = flows.as_array().expect("a list");
    flows
        .iter()
        .filter_map(|flow| flow["flowId"].as_str())
        .collect()
}

#[tokio::test]
async fn project_of_agentsflow_imports_without_a_change() {
    let rig = Rig::start().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("support/agentsflow_project");
    let files = files_below(&folder);
    let named: Vec<(String, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (format!("Project-main/{path}"), bytes.as_slice()))
        .collect();
    let entries: Vec<(&str, &[u8])> = named
        .iter()
        .map(|(name, bytes)| (&**name, *bytes))
        .collect();
    let imported = import(&rig, compressed(&entries)).await;
    assert_eq!(imported.status.as_u16(), 201, "{}", imported.text);
    assert_eq!(ids(&imported.json()), IDS);
    for id in IDS {
        let stored = rig.get(&format!("/api/flows/{id}")).await.ok();
        let assets = stored["assets"].as_array().expect("assets").len();
        // The evaluating agent is in no flow, so it is not stored.
        assert_eq!(assets, if id == IDS[0] { 5 } else { 0 }, "{stored}");
        let exported = rig.request(Method::GET, &format!("/api/flows/{id}/export"));
        let bytes = exported.send().await.expect("an answer").bytes().await;
        let again = import(&rig, bytes.expect("an archive").to_vec()).await;
        let again = again.json();
        assert_eq!(again[0]["contentHash"], stored["contentHash"], "{again}");
    }
}

#[tokio::test]
async fn project_of_agentsflow_runs_as_system_flows() {
    let rig = with_flows(PROJECT, "").await;
    let listed = rig.get("/api/flows").await.ok();
    assert_eq!(ids(&listed), IDS);
    for flow in listed.as_array().expect("a list") {
        assert_eq!(flow["errors"], json!([]), "{flow}");
    }
    let say = r#"then say {"score": 1, "canComplete": true, "reason": "good"}"#;
    for id in ["apps-flow", "packages-flow"] {
        let thread = rig.thread().await;
        let body = json!({"assistant_id": format!("flow-{id}"), "input": {"userPrompt": say}});
        let end = rig
            .post(&format!("/threads/{thread}/runs/wait"), &body)
            .await
            .ok();
        assert_eq!(end["visits"]["main-evaluate"], 1, "{end}");
        assert_eq!(end["result"], "good", "{end}");
    }
}

/// Agent files do not name a transport; the address of the backend does, and no test calls it.
#[tokio::test]
async fn agent_files_of_agentsflow_make_up_the_prompts() {
    let rig = with_flows(PROJECT, "").await;
    let thread = rig.thread().await;
    let body = json!({
        "assistant_id": "flow-agents-flow-flow", "input": {"userPrompt": "hello"},
        "context": {"dry_run": true}, "stream_mode": ["custom"],
    });
    let run = rig.run(&thread, &body).await;
    let events: Vec<Value> = run
        .frames
        .iter()
        .filter_map(|frame| frame.json().ok())
        .filter(|event| event["eventType"] == "agent_selected")
        .collect();
    let agents: Vec<&Value> = events.iter().map(|event| &event["agentId"]).collect();
    assert_eq!(agents, ["example-plan", "example-execute", "example-plan"]);
    let plan = events[0].to_string();
    for part in [
        "Answer in plain words.",
        "numbered list",
        "Search for the name",
        "You plan.",
    ] {
        assert!(plan.contains(part), "{part}: {plan}");
    }
    assert!(
        !events[1].to_string().contains("numbered list"),
        "{}",
        events[1]
    );
}
