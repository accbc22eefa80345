//! `deerflow users` and `deerflow audit` over the data of a gateway that runs, was stopped or was
//! killed, and the deletion of accounts with their data.

use deerflow_tests::gateway::GatewayProcess;
use serde_json::{Value, json};

use crate::rig::browser::{Browser, PASSWORD};
use crate::rig::{HttpResponse, body, config, strict_model, until};

/// Result of a command.
struct Output {
    succeeded: bool,
    out: String,
    error: String,
}

impl Output {
    #[track_caller]
    fn json(&self) -> Value {
        assert!(self.succeeded, "{}", self.error);
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

async fn deerflow(gateway: &GatewayProcess, arguments: &[&str]) -> Output {
    let output = gateway.program(arguments).output().await.expect("ran");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output {
        succeeded: output.status.success(),
        out: text(&output.stdout),
        error: text(&output.stderr),
    }
}

/// Creates the first administrator by the command line, and signs in with its stored password.
async fn root(gateway: &GatewayProcess) -> Browser {
    let create = ["users", "create", "root@example.org", "--admin", "--json"];
    let created = deerflow(gateway, &create).await.json();
    assert_eq!(created["id"], "default", "{created}");
    let file = created["credentials_file"].as_str().expect("a path");
    let text = std::fs::read_to_string(file).expect("read");
    let (_, password) = text.trim().split_once("password: ").expect("a password");
    let mut root = Browser::new(gateway);
    // The command made the first account; the gateway notices it within half a second.
    until("the first account", async || {
        let mut anonymous = Browser::new(gateway);
        let status = anonymous.get("/api/models").await.status;
        (status == 401).then_some(())
    })
    .await;
    let signed_in = root.login("root@example.org", password).await.ok();
    assert_eq!(signed_in["needs_setup"], true);
    root
}

/// Registers a user with a thread, a file, a key, an item and a schedule.
async fn ann(gateway: &GatewayProcess) -> (Browser, String) {
    let mut ann = Browser::new(gateway);
    assert_eq!(ann.sign_up("register", "ann@example.org").await.status, 201);
    let thread = ann.post("/api/threads", json!({})).await.ok();
    let thread = thread["thread_id"].as_str().expect("an id").to_owned();
    let write = r#"[[tool:write_file {"path":"/mnt/user-data/outputs/a.txt","content":"x","description":"d"}]] then say done"#;
    let path = format!("/api/threads/{thread}/runs/wait");
    ann.post(&path, body(write)).await.ok();
    let key = ann.post("/api/v1/auth/keys", json!({ "name": "script" }));
    assert_eq!(key.await.status, 201);
    let item = json!({ "namespace": ["n"], "key": "k", "value": {} });
    let stored = ann.send(reqwest::Method::PUT, "/store/items", Some(item));
    assert!(stored.await.status.is_success());
    let task = json!({
        "title": "t", "prompt": "p", "schedule_type": "cron", "timezone": "UTC",
        "schedule_spec": { "cron": "0 0 1 1 *" },
    });
    ann.post("/api/scheduled-tasks", task).await.ok();
    (ann, thread)
}

async fn start() -> (
    GatewayProcess,
    deerflow_tests::scripted_openai::ScriptedOpenAi,
) {
    let model = strict_model().await;
    let gateway = GatewayProcess::start(&config(&model.base_url, ""), &[]).await;
    (gateway.expect("gateway"), model)
}

#[tokio::test]
async fn commands_manage_accounts_of_a_running_gateway() {
    let (gateway, _model) = start().await;
    let mut root = root(&gateway).await;
    let (mut ann, thread) = ann(&gateway).await;
    let id = ann.id().await;
    let list = deerflow(&gateway, &["users", "list", "--q", "ANN", "--json"]).await;
    assert_eq!(list.json()[0]["id"], json!(id));
    let last = deerflow(&gateway, &["users", "demote", "root@example.org"]).await;
    assert!(
        !last.succeeded && last.error.contains("last enabled"),
        "{}",
        last.error
    );
    deerflow(&gateway, &["users", "disable", "ann@example.org", "--json"])
        .await
        .json();
    until("the end of the session", async || {
        let status = ann.get("/api/v1/auth/me").await.status;
        (status == 401).then_some(())
    })
    .await;
    ann.login("ann@example.org", PASSWORD).await.refusal(403);
    deerflow(&gateway, &["users", "enable", "ann@example.org", "--json"])
        .await
        .json();
    ann.login("ann@example.org", PASSWORD).await.ok();
    ann.get(&format!("/api/threads/{thread}")).await.ok();
    deerflow(&gateway, &["users", "promote", &id, "--json"])
        .await
        .json();
    until("the new role", async || {
        let status = ann.get("/api/v1/admin/users").await.status;
        (status == 200).then_some(())
    })
    .await;
    deerflow(&gateway, &["users", "demote", &id, "--json"])
        .await
        .json();
    let folder = gateway.home().join(".deer-flow/users").join(&id);
    assert!(folder.is_dir(), "{}", folder.display());
    let delete = ["users", "delete", "ann@example.org", "--yes", "--json"];
    let deleted = deerflow(&gateway, &delete).await.json();
    for kind in [
        "threads",
        "api_keys",
        "store_items",
        "scheduled_tasks",
        "folders",
    ] {
        assert_eq!(deleted["deleted"][kind], 1, "{kind} {deleted}");
    }
    assert!(!folder.exists());
    ann.login("ann@example.org", PASSWORD).await.refusal(401);
    let users = root.get("/api/v1/admin/users").await.ok();
    assert_eq!(users["total"], 1);
    let audit = deerflow(&gateway, &["audit", "--user", &id, "--json"])
        .await
        .json();
    let actions: Vec<&str> = audit
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    for action in [
        "account.deleted",
        "role.changed",
        "account.disabled",
        "key.created",
    ] {
        assert!(actions.contains(&action), "{action} {actions:?}");
    }
    assert!(!audit.to_string().contains(PASSWORD));
}

#[tokio::test]
async fn administrator_deletes_user_with_run_in_progress() {
    let (gateway, _model) = start().await;
    let mut root = root(&gateway).await;
    let (mut ann, thread) = ann(&gateway).await;
    let id = ann.id().await;
    let path = format!("/api/threads/{thread}/runs");
    ann.post(&path, body("[[hang]] then say x")).await.ok();
    let path = format!("/api/v1/admin/users/{id}");
    let deleted = root.send(reqwest::Method::DELETE, &path, None).await.ok();
    assert_eq!(deleted["deleted"]["ended_runs"], 1, "{deleted}");
    assert_eq!(deleted["deleted"]["threads"], 1, "{deleted}");
    let folder = gateway.home().join(".deer-flow/users").join(&id);
    assert!(!folder.exists());
    let again = Browser::new(&gateway)
        .sign_up("register", "ann@example.org")
        .await;
    assert_eq!(again.status, 201, "{}", again.text);
}

#[tokio::test]
async fn deletion_with_locked_journal_names_working_request() {
    let model = strict_model().await;
    let sections = "run_events: {backend: jsonl}\n";
    let gateway = GatewayProcess::start(&config(&model.base_url, sections), &[]).await;
    let mut gateway = gateway.expect("gateway");
    root(&gateway).await;
    let (mut ann, thread) = ann(&gateway).await;
    let id = ann.id().await;
    let delete = ["users", "delete", "ann@example.org", "--yes", "--json"];
    let refused = deerflow(&gateway, &delete).await;
    assert!(!refused.succeeded, "{}", refused.out);
    for part in ["deerflow keys create", "/api/v1/admin/users/ID"] {
        assert!(refused.error.contains(part), "{}", refused.error);
    }
    ann.get(&format!("/api/threads/{thread}")).await.ok();
    let create = ["keys", "create", "--user", "root@example.org", "--admin"];
    let key = deerflow(&gateway, &create).await;
    assert!(key.succeeded, "{}", key.error);
    let key = key.out.lines().next();
    let request = crate::rig::client()
        .delete(format!("{}/api/v1/admin/users/{id}", gateway.base_url()))
        .header("x-api-key", key.expect("a key"));
    let deleted = HttpResponse::of(request).await.ok();
    assert_eq!(deleted["deleted"]["threads"], 1, "{deleted}");
    gateway.terminate().await.expect("stopped");
    let again = deerflow(&gateway, &delete).await;
    assert!(
        !again.succeeded && !again.error.contains("journal"),
        "{}",
        again.error
    );
}

#[tokio::test]
async fn commands_work_after_gateway_was_killed() {
    let (mut gateway, _model) = start().await;
    root(&gateway).await;
    let (mut ann, thread) = ann(&gateway).await;
    let id = ann.id().await;
    let path = format!("/api/threads/{thread}/runs");
    ann.post(&path, body("[[hang]] then say x")).await.ok();
    gateway.kill9().await.expect("killed");
    let reset = deerflow(&gateway, &["users", "reset-password"]).await;
    assert!(reset.succeeded, "{}", reset.error);
    let file = gateway
        .home()
        .join(".deer-flow/admin_initial_credentials.txt");
    let text = std::fs::read_to_string(file).expect("read");
    let (_, password) = text.trim().split_once("password: ").expect("a password");
    assert!(!reset.out.contains(password));
    let delete = ["users", "delete", &id, "--yes", "--json"];
    let deleted = deerflow(&gateway, &delete).await.json();
    assert_eq!(deleted["deleted"]["ended_runs"], 1, "{deleted}");
    assert_eq!(deleted["deleted"]["threads"], 1, "{deleted}");
    gateway.restart().await.expect("restarted");
    let mut root = Browser::new(&gateway);
    let signed_in = root.login("root@example.org", password).await.ok();
    assert_eq!(signed_in["needs_setup"], true);
    let users = root.get("/api/v1/admin/users").await.ok();
    assert_eq!(users["total"], 1, "{users}");
}
