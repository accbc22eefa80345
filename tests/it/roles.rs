//! Roles: routes, models, tools, skills and MCP servers, by the rules of `authorization`.

use deerflow_tests::gateway::GatewayProcess;
use deerflow_tests::scripted_openai::ScriptedOpenAi;
use serde_json::{Value, json};

use crate::rig::browser::Browser;
use crate::rig::{body_with, config, list, strict_model, text, until};

/// MCP server in a few lines of shell, with one tool.
const SERVER: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}' ;;
    *'"method":"tools/list"'*) answer '{"tools":[{"name":"say","description":"Says a word.","inputSchema":{"type":"object"}}]}' ;;
  esac
done"#;

pub(crate) struct Roles {
    pub(crate) gateway: GatewayProcess,
    pub(crate) model: ScriptedOpenAi,
    pub(crate) root: Browser,
    pub(crate) ann: Browser,
}

/// Configuration with a second model and these rules of users, one section per line.
fn ruled(model: &ScriptedOpenAi, rules: &str) -> String {
    let second = format!(
        "  - {{name: second, use: openai, model: other, api_key: k, base_url: '{}'}}\ntool_groups:",
        model.base_url
    );
    let rules: String = rules
        .lines()
        .map(|line| format!("          {}\n", line.trim()))
        .collect();
    let sections = format!(
        "authorization:\n  enabled: true\n  provider:\n    use: deerflow.authz.rbac:RbacAuthorizationProvider\n    config:\n      roles:\n        admin: {{}}\n        user:\n{rules}"
    );
    config(&model.base_url, &sections).replacen("tool_groups:", &second, 1)
}

impl Roles {
    async fn start(rules: &str) -> Self {
        Self::configured(rules, |config| config).await
    }

    /// Starts a gateway with a changed configuration.
    pub(crate) async fn configured(rules: &str, change: impl FnOnce(String) -> String) -> Self {
        let model = strict_model().await;
        let gateway = GatewayProcess::start(&change(ruled(&model, rules)), &[]).await;
        let gateway = gateway.expect("gateway");
        let (mut root, mut ann) = (Browser::new(&gateway), Browser::new(&gateway));
        let created = root.sign_up("initialize", "root@example.org").await;
        assert_eq!(created.status, 201, "{}", created.text);
        let created = ann.sign_up("register", "ann@example.org").await;
        assert_eq!(created.status, 201, "{}", created.text);
        Self {
            gateway,
            model,
            root,
            ann,
        }
    }

    /// Replaces the rules of users in the running gateway.
    fn edit(&self, rules: &str) {
        let home = self.gateway.home();
        std::fs::write(home.join("config.new"), ruled(&self.model, rules)).expect("written");
        std::fs::rename(home.join("config.new"), home.join("config.yaml")).expect("renamed");
    }

    pub(crate) fn offered(&self) -> Vec<String> {
        let requests = self.model.requests().into_iter().rev();
        let mut requests = requests.filter(|request| !request.tools.is_empty());
        requests.next().expect("a request with tools").tools
    }

    /// Returns the system text of the last request with tools.
    fn last_system_text(&self) -> String {
        let requests = self.model.requests().into_iter().rev();
        let mut requests = requests.filter(|request| !request.tools.is_empty());
        let request = requests.next().expect("a request with tools");
        let mut messages = request.messages.iter();
        let system = messages.find(|message| message["role"] == "system");
        system.expect("a system message").to_string()
    }

    pub(crate) fn last_model(&self) -> Option<String> {
        let requests = self.model.requests();
        requests.last().and_then(|request| request.model.clone())
    }
}

/// Runs a prompt on a new thread and returns the values of its end.
pub(crate) async fn run(browser: &mut Browser, prompt: &str, context: Value) -> Value {
    let thread = browser.post("/api/threads", json!({})).await.ok();
    let path = format!("/api/threads/{}/runs/wait", text(&thread["thread_id"]));
    let body = body_with(prompt, json!({ "context": context }));
    browser.post(&path, body).await.ok()
}

fn model_names(models: &Value) -> Vec<&str> {
    let models = list(&models["models"]).iter();
    models.map(|model| text(&model["name"])).collect()
}

#[tokio::test]
async fn tools_of_other_roles_are_neither_offered_nor_called() {
    let mut roles = Roles::start("tools: {deny: [write_file, ask_clarification]}").await;
    let write = r#"{"path":"/mnt/user-data/outputs/a.txt","content":"x","description":"d"}"#;
    let ghost = format!("[[ghost:write_file {write}]] then say done");
    let values = run(&mut roles.ann, &ghost, json!({})).await;
    let offered = roles.offered();
    assert!(offered.contains(&"read_file".to_owned()), "{offered:?}");
    for tool in ["write_file", "ask_clarification"] {
        assert!(!offered.contains(&tool.to_owned()), "{offered:?}");
    }
    let results = list(&values["messages"]).iter();
    let mut results = results.filter(|message| message["type"] == "tool");
    let refused = results.next().expect("a result of the call").to_string();
    assert!(refused.to_lowercase().contains("error"), "{refused}");
    let id = roles.ann.id().await;
    let threads = roles.gateway.home().join(".deer-flow/users").join(id);
    let found = walk(&threads).into_iter().any(|name| name == "a.txt");
    assert!(!found, "the file was written");
    run(&mut roles.root, "then say x", json!({})).await;
    assert!(roles.offered().contains(&"write_file".to_owned()));
    let context = json!({ "subagent_enabled": true });
    let task = r#"[[tool:task {"description":"d","prompt":"then say x","subagent_type":"general-purpose"}]] then say done"#;
    run(&mut roles.ann, task, context).await;
    let requests = roles.model.requests();
    let wrong = requests
        .iter()
        .rev()
        .take(3)
        .any(|request| request.tools.contains(&"write_file".to_owned()));
    assert!(!wrong, "a subagent has the tool");
    roles.edit("tools: {allow: []}");
    until("no tools", async || {
        let before = roles.model.requests().len();
        run(&mut roles.ann, "then say x", json!({})).await;
        let requests = roles.model.requests();
        let new = &requests[before..];
        new.iter()
            .all(|request| request.tools.is_empty())
            .then_some(())
    })
    .await;
}

/// Names of all files below a folder.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => names.extend(walk(&entry.path())),
            _ => names.push(entry.file_name().to_string_lossy().into_owned()),
        }
    }
    names
}

#[tokio::test]
async fn models_of_other_roles_are_hidden_and_replaced() {
    let mut roles = Roles::start("models: {allow: [second]}").await;
    let seen = roles.ann.get("/api/models").await.ok();
    assert_eq!(model_names(&seen), ["second"]);
    let all = roles.root.get("/api/models").await.ok();
    assert_eq!(model_names(&all), ["fake", "second"]);
    let refused = roles.ann.get("/api/models/fake").await.refusal(403);
    assert_eq!(refused, "Model 'fake' is not available for your role");
    roles.ann.get("/api/models/second").await.ok();
    for path in [
        "/api/models/%66ake",
        "/api/models/Second",
        "/api/models/absent",
    ] {
        roles.ann.get(path).await.refusal(403);
    }
    for context in [
        json!({ "model_name": "fake" }),
        json!({}),
        json!({ "model_name": "second" }),
    ] {
        run(&mut roles.ann, "then say x", context).await;
        assert_eq!(roles.last_model().as_deref(), Some("other"));
    }
    run(
        &mut roles.root,
        "then say x",
        json!({ "model_name": "fake" }),
    )
    .await;
    assert_eq!(roles.last_model().as_deref(), Some("scripted-1"));
    roles.edit("models: {allow: false}");
    until("no models", async || {
        let models = roles.ann.get("/api/models").await.ok();
        model_names(&models).is_empty().then_some(())
    })
    .await;
    let thread = roles.ann.post("/api/threads", json!({})).await.ok();
    let path = format!("/api/threads/{}/runs", text(&thread["thread_id"]));
    let body = body_with("then say x", json!({ "context": {} }));
    let refused = roles.ann.post(&path, body).await;
    assert!(refused.status.is_client_error(), "{}", refused.text);
}

#[tokio::test]
async fn routes_need_the_permission_of_the_role() {
    let mut roles = Roles::start("routes: {allow: [\"threads:read\", \"runs:read\"]}").await;
    let search = roles.ann.post("/api/threads/search", json!({})).await;
    search.ok();
    for path in ["/api/threads", "/api/langgraph/threads", "/threads"] {
        let refused = roles.ann.post(path, json!({})).await.refusal(403);
        assert!(
            refused
                .to_string()
                .contains("Permission denied: threads:write"),
            "{refused}"
        );
    }
    let body = body_with("then say x", json!({}));
    for path in ["/api/runs/wait", "/runs/stream", "/api/langgraph/runs/wait"] {
        let refused = roles.ann.post(path, body.clone()).await.refusal(403);
        assert!(
            refused
                .to_string()
                .contains("Permission denied: runs:create"),
            "{refused}"
        );
    }
    for path in [
        "/api/%74hreads",
        "/API/threads",
        "/api//threads",
        "/api/threads//",
        "/api/./threads%2f",
    ] {
        let refused = roles.ann.post(path, json!({})).await;
        assert!(
            matches!(refused.status.as_u16(), 403..=405),
            "{path} {}",
            refused.text
        );
    }
    roles.root.post("/api/threads", json!({})).await.ok();
    let key = roles
        .ann
        .post("/api/v1/auth/keys", json!({ "name": "k" }))
        .await;
    let key = key.json()["key"].as_str().expect("a key").to_owned();
    let by_key = crate::rig::client()
        .post(format!("{}/api/threads", roles.gateway.base_url()))
        .header("x-api-key", key)
        .json(&json!({}))
        .send();
    assert_eq!(by_key.await.expect("answered").status(), 403);
    roles.edit("routes: {deny: [\"threads:delete\"]}");
    let thread = until("the new rule", async || {
        let made = roles.ann.post("/api/threads", json!({})).await;
        (made.status == 200).then(|| made.json())
    })
    .await;
    let path = format!("/api/threads/{}", text(&thread["thread_id"]));
    let delete = roles.ann.send(reqwest::Method::DELETE, &path, None).await;
    delete.refusal(403);
}

#[tokio::test]
async fn mcp_servers_and_skills_of_other_roles_are_not_seen() {
    let mut roles = Roles::start("mcp_servers: {deny: [shell]}\nskills: {allow: false}").await;
    let entry = json!({ "command": "/bin/sh", "args": ["-c", SERVER] });
    let servers = json!({ "mcpServers": { "shell": entry.clone(), "open": entry } });
    let file = roles.gateway.home().join("extensions_config.json");
    std::fs::write(file, servers.to_string()).expect("written");
    until("the tools of the servers", async || {
        run(&mut roles.root, "then say x", json!({})).await;
        let offered = roles.offered();
        ["shell_say", "open_say"]
            .iter()
            .all(|tool| offered.iter().any(|name| name == tool))
            .then_some(())
    })
    .await;
    run(&mut roles.ann, "then say x", json!({})).await;
    let offered = roles.offered();
    assert!(offered.contains(&"open_say".to_owned()), "{offered:?}");
    assert!(!offered.contains(&"shell_say".to_owned()), "{offered:?}");
    let of_root = roles.root.get("/api/skills").await.ok();
    assert!(!list(&of_root["skills"]).is_empty());
    let of_ann = roles.ann.get("/api/skills").await.ok();
    assert!(list(&of_ann["skills"]).is_empty(), "{of_ann}");
    let name = text(&list(&of_root["skills"])[0]["name"]).to_owned();
    let prompt = format!("/{name} then say x");
    run(&mut roles.ann, &prompt, json!({})).await;
    assert!(!roles.last_system_text().contains("SKILL.md"));
    run(&mut roles.root, &prompt, json!({})).await;
    assert!(roles.last_system_text().contains("SKILL.md"));
}

#[tokio::test]
async fn other_provider_stops_the_start() {
    let model = strict_model().await;
    let sections = "authorization: {enabled: true, provider: {use: 'company.policy:Provider'}}\n";
    let started = GatewayProcess::start(&config(&model.base_url, sections), &[]).await;
    let Err(error) = started else {
        panic!("the gateway started")
    };
    let error = format!("{error:#}");
    assert!(error.contains("authorization.provider.use"), "{error}");
}
