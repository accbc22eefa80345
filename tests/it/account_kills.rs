//! Kills during the takeover of the data of the time before sign-in, and during imports.

use std::path::Path;

use deerflow_tests::gateway::GatewayProcess;
use serde_json::{Value, json};

use crate::rig::browser::{Browser, PASSWORD};
use crate::rig::{body, client, config, strict_model, text};

const REPORT: &str = "/mnt/user-data/outputs/report.md";

#[tokio::test]
async fn takeover_of_earlier_data_is_whole_or_absent_after_death() {
    for (point, is_created) in [("account.written", false), ("account.committed", true)] {
        let model = strict_model().await;
        let gateway = GatewayProcess::start(&config(&model.base_url, ""), &[]).await;
        let mut gateway = gateway.expect("gateway");
        let mut before = Browser::new(&gateway);
        let thread = before.post("/api/threads", json!({})).await.ok();
        let path = format!("/api/threads/{}", text(&thread["thread_id"]));
        let write = json!({ "description": "write", "path": REPORT, "content": "# R" });
        let prompt = format!("[[tool:write_file {write}]] then say Done.");
        let wait = format!("{path}/runs/wait");
        before.post(&wait, body(&prompt)).await.ok();
        gateway.set_env("DEERFLOW_DIES_AT", Some(&format!("{point}:1")));
        gateway.kill9().await.expect("killed");
        gateway.restart().await.expect("started");
        let sent = client()
            .post(format!("{}/api/v1/auth/initialize", gateway.base_url()))
            .json(&json!({ "email": "root@example.org", "password": PASSWORD }))
            .send();
        assert!(sent.await.is_err(), "{point} was not passed");
        gateway.kill9().await.expect("ended");
        gateway.set_env("DEERFLOW_DIES_AT", None);
        gateway.restart().await.expect("started");
        let mut root = Browser::new(&gateway);
        let status = root.get("/api/v1/auth/setup-status").await.ok();
        assert_eq!(status["needs_setup"], !is_created, "{point}");
        if is_created {
            root.login("root@example.org", PASSWORD).await.ok();
        } else {
            let created = root.sign_up("initialize", "root@example.org").await;
            assert_eq!(created.status, 201, "{}", created.text);
        }
        assert_eq!(root.id().await, "default");
        root.get(&path).await.ok();
        let file = root.get(&format!("{path}/artifacts{REPORT}")).await;
        assert_eq!((file.status.as_u16(), file.text.as_str()), (200, "# R"));
        let stranger = Browser::new(&gateway).get(&path).await;
        assert_eq!(stranger.status, 401);
    }
}

/// Database of a DeerFlow installation with three users, `u0` to `u2`.
const USERS: &[u8] = include_bytes!("recorded/deerflow_users.db");

/// Runs the import and returns its result; `None` if the process died.
async fn import(gateway: &GatewayProcess, file: &Path, dies_at: Option<&str>) -> Option<Value> {
    let file = file.to_str().expect("a path");
    let mut command = gateway.program(&["users", "import", file, "--json"]);
    if let Some(point) = dies_at {
        command.env("DEERFLOW_DIES_AT", point);
    }
    let output = command.output().await.expect("ran");
    let result = serde_json::from_slice(&output.stdout);
    output.status.success().then(|| result.expect("JSON"))
}

#[tokio::test]
async fn import_is_whole_or_absent_after_death() {
    let model = strict_model().await;
    let gateway = GatewayProcess::start(&config(&model.base_url, ""), &[]).await;
    let gateway = gateway.expect("gateway");
    let file = gateway.home().join("deerflow-users.db");
    std::fs::write(&file, USERS).expect("written");
    for (point, missing) in [("account.written:2", 3), ("account.committed:1", 0)] {
        assert_eq!(import(&gateway, &file, Some(point)).await, None, "{point}");
        let output = gateway.program(&["users", "list", "--json"]).output().await;
        let output = output.expect("ran");
        let users: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = users.as_array().map_or(0, Vec::len);
        assert_eq!(found, 3 - missing, "{point} {users}");
    }
    let repeated = import(&gateway, &file, None).await.expect("imported");
    assert_eq!(repeated["imported"], json!([]), "{repeated}");
}
