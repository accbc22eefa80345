//! All routes of both dialects, called by everybody who must not see the data of a user: no byte of
//! it is in a response, nothing of it changes, and no response is an internal error.

use std::time::Duration;

use harness::config::RoleRules;
use serde_json::{Value, json};

use crate::schema::{Document, Operation};
use crate::sign_in::browser::{Browser, PASSWORD};
use crate::support::{Gateway, HttpResponse, saying};

/// Text that only the user of the data may read.
const SECRET: &str = "canary-of-ann-77f3";
/// Routes that need no sign-in.
const OPEN: [&str; 13] = [
    "/",
    "/ok",
    "/info",
    "/health",
    "/ready",
    "/v1/auth/login/local",
    "/v1/auth/register",
    "/v1/auth/initialize",
    "/v1/auth/logout",
    "/v1/auth/setup-status",
    "/v1/auth/providers",
    "/v1/auth/oauth/{provider}",
    "/v1/auth/callback/{provider}",
];

/// Data of one user, with the ids that foreign requests name.
struct Ann<'a> {
    browser: Browser<'a>,
    ids: Vec<(&'static str, String)>,
    thread: String,
}

fn id(json: &Value, key: &str) -> String {
    json[key].as_str().unwrap_or("x").to_owned()
}

impl<'a> Ann<'a> {
    async fn new(gateway: &'a Gateway) -> Self {
        let mut browser = Browser::new(gateway);
        browser.register("ann@example.org").await;
        let user = id(&browser.me().await.json(), "id");
        let made = browser
            .post("/api/threads", json!({ "metadata": { "note": SECRET } }))
            .await;
        let thread = id(&made.json(), "thread_id");
        let path = format!("/api/threads/{thread}/runs/wait");
        let run = browser.post(&path, saying(&format!("say {SECRET}"))).await;
        assert!(run.text().contains(SECRET), "{}", run.text());
        let runs = browser.get(&format!("/api/threads/{thread}/runs")).await;
        let run = id(&runs.json()[0], "run_id");
        let item = json!({ "namespace": ["n"], "key": "k", "value": { "v": SECRET } });
        browser.send("PUT", "/store/items", item).await;
        let fact = json!({ "content": SECRET, "category": "knowledge", "confidence": 0.9 });
        browser.post("/api/memory/facts", fact).await;
        let facts = browser.get("/api/memory").await.json();
        assert!(facts.to_string().contains(SECRET), "{facts}");
        let key = browser
            .post("/api/v1/auth/keys", json!({ "name": SECRET }))
            .await;
        let cron = json!({
            "assistant_id": "lead_agent", "schedule": "0 0 1 1 *",
            "metadata": { "v": SECRET },
        });
        let cron = browser.post("/runs/crons", cron).await;
        assert_eq!(cron.code(), 200, "{}", cron.text());
        let task = json!({
            "title": SECRET, "prompt": SECRET, "schedule_type": "cron", "timezone": "UTC",
            "schedule_spec": { "cron": "0 0 1 1 *" },
        });
        let task = browser.post("/api/scheduled-tasks", task).await;
        assert_eq!(task.code(), 200, "{}", task.text());
        let assistant = json!({ "graph_id": "lead_agent", "name": SECRET });
        let assistant = browser.post("/assistants", assistant).await;
        assert_eq!(assistant.code(), 200, "{}", assistant.text());
        let agent = json!({ "name": "hers", "description": SECRET, "soul": SECRET });
        browser.post("/api/agents", agent).await;
        let profile = json!({ "content": SECRET });
        browser.send("PUT", "/api/user-profile", profile).await;
        let session = browser.get("/api/v1/auth/sessions").await.json();
        let ids = vec![
            ("thread_id", thread.clone()),
            ("run_id", run),
            ("user_id", user),
            ("key_id", id(&key.json(), "id")),
            ("cron_id", id(&cron.json(), "cron_id")),
            ("task_id", id(&task.json(), "id")),
            ("assistant_id", id(&assistant.json(), "assistant_id")),
            ("session_id", id(&session["sessions"][0], "id")),
            ("fact_id", id(&facts["facts"][0], "id")),
            ("name", "hers".to_owned()),
            ("path", "mnt/user-data/outputs/a.txt".to_owned()),
        ];
        Self {
            browser,
            ids,
            thread,
        }
    }

    /// Returns the path of an operation with the ids of this user.
    fn path(&self, template: &str) -> String {
        let known = self.ids.iter();
        let path = known.fold(template.to_owned(), |path, (name, id)| {
            path.replace(&format!("{{{name}}}"), id)
        });
        let parts = path.split('/').map(|part| match part.strip_prefix('{') {
            Some(_) => "x",
            None => part,
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// Bodies that name the data of this user.
    fn bodies(&self) -> [Value; 2] {
        let threads = [&self.thread];
        let named = json!({
            "thread_id": self.thread, "thread_ids": threads, "ids": threads,
            "assistant_id": "absent", "user_id": self.ids[2].1, "namespace": ["n"],
            "namespace_prefix": [], "key": "k", "limit": 100, "metadata": { "note": SECRET.len() },
            "run_ids": [self.ids[1].1], "strategy": "delete", "source_thread_id": self.thread,
        });
        [json!({}), named]
    }

    /// Asserts that everything is as it was.
    async fn assert_untouched(&mut self) {
        let state = format!("/api/threads/{}/state", self.thread);
        let task = format!("/api/scheduled-tasks/{}", self.ids[5].1);
        let assistant = format!("/assistants/{}", self.ids[6].1);
        for path in [
            &*state,
            &*task,
            &*assistant,
            "/api/memory",
            "/store/items?namespace=n&key=k",
            "/api/v1/auth/keys",
        ] {
            let read = self.browser.get(path).await;
            assert!(read.text().contains(SECRET), "{path} {}", read.text());
        }
    }
}

/// Returns all operations; those that end the caller's session come last.
async fn operations(browser: &mut Browser<'_>) -> Vec<Operation> {
    let document = browser.get("/api/openapi.json").await;
    let mut operations = Document(document.json()).operations();
    assert!(operations.len() > 250, "{}", operations.len());
    operations.sort_by_key(|operation| {
        let ends = ["logout", "sessions", "change-password"];
        ends.iter().any(|end| operation.path.contains(end))
    });
    operations
}

fn without_prefix(path: &str) -> &str {
    ["/api/langgraph", "/api"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
        .unwrap_or(path)
}

/// Calls every operation and returns the responses that break a rule.
async fn offences(
    ann: &Ann<'_>,
    caller: &mut Browser<'_>,
    operations: &[Operation],
    headers: &[(&str, &str)],
    is_allowed: impl Fn(&Operation, &HttpResponse) -> bool,
) -> Vec<String> {
    let mut offences = Vec::new();
    for operation in operations {
        let path = ann.path(&operation.path);
        let bodies = match operation.method.as_str() {
            "GET" => vec![Value::Null],
            _ => ann.bodies().to_vec(),
        };
        for body in bodies {
            let sent = if body.is_null() {
                String::new()
            } else {
                body.to_string()
            };
            let json = ("content-type", "application/json");
            let headers = [headers, &[json]].concat();
            let request = caller.raw(&operation.method, &path, &headers, sent);
            let response = tokio::time::timeout(Duration::from_secs(20), request).await;
            let line = |what: &str| format!("{what}: {} {path}", operation.method);
            let Ok(response) = response else {
                offences.push(line("no end of the response"));
                continue;
            };
            if response.text().contains(SECRET) {
                offences.push(line("foreign data"));
            }
            // The gateway of this test runs no channels, which is a documented answer.
            let has_no_channels = response.code() == 503 && operation.path.contains("/channels/");
            // This server has no integration with Lark, which is a documented answer, too.
            let has_no_lark = response.code() == 501 && operation.path.contains("/lark/");
            let is_failure = response.code() >= 500 && !has_no_channels && !has_no_lark;
            if is_failure || !is_allowed(operation, &response) {
                let text: String = response.text().chars().take(200).collect();
                offences.push(line(&format!("{} {text}", response.code())));
            }
        }
    }
    offences
}

#[tokio::test]
async fn anonymous_and_disabled_reach_open_routes_only() {
    let gateway = Gateway::with_agents();
    let mut ann = Ann::new(&gateway).await;
    let operations = operations(&mut ann.browser).await;
    let mut disabled = Browser::new(&gateway);
    disabled.register("eve@example.org").await;
    let eve = id(&disabled.me().await.json(), "id");
    let change = deerflow_accounts::UserChange {
        disabled: Some(true),
        ..Default::default()
    };
    let service = &gateway.state.security.sign_in.service;
    let changed = service.change_user(&eve, change, &Default::default()).await;
    assert!(changed.is_ok());
    let refused = |operation: &Operation, response: &HttpResponse| {
        let is_open = OPEN.contains(&without_prefix(&operation.path))
            && (operation.path.starts_with("/api") == operation.path.contains("/auth/"));
        is_open || response.code() == 401
    };
    let mut anonymous = Browser::new(&gateway);
    for caller in [&mut anonymous, &mut disabled] {
        let found = offences(&ann, caller, &operations, &[], refused).await;
        assert_eq!(found, Vec::<String>::new());
    }
    for key in ["", "dfk_x", "Bearer", "dfk_0000000000000000_00"] {
        let refused = anonymous
            .raw(
                "GET",
                "/api/threads/x",
                &[("x-api-key", key)],
                String::new(),
            )
            .await;
        assert!(matches!(refused.code(), 401 | 429), "{key}");
    }
    for path in [
        "/%61pi/models",
        "/API/models",
        "//api/models",
        "/api/./models",
        "/api/v1/auth/../../models",
    ] {
        let refused = anonymous.get(path).await;
        assert!((400..500).contains(&refused.code()), "{path}");
    }
    ann.assert_untouched().await;
}

#[tokio::test]
async fn other_user_and_program_reach_nothing_of_a_user() {
    let gateway = Gateway::with_agents();
    let mut ann = Ann::new(&gateway).await;
    let operations = operations(&mut ann.browser).await;
    let mut bob = Browser::new(&gateway);
    bob.register("bob@example.org").await;
    let key = bob.post("/api/v1/auth/keys", json!({ "name": "k" })).await;
    let key = id(&key.json(), "key");
    let mut program = Browser::new(&gateway);
    let with_key = [("x-api-key", key.as_str())];
    let admins = |operation: &Operation, response: &HttpResponse| {
        !without_prefix(&operation.path).starts_with("/v1/admin") || response.code() == 403
    };
    let found = offences(&ann, &mut program, &operations, &with_key, admins).await;
    assert_eq!(found, Vec::<String>::new());
    let found = offences(&ann, &mut bob, &operations, &[], |operation, response| {
        // The last operations end the session.
        admins(operation, response) || response.code() == 401
    });
    assert_eq!(found.await, Vec::<String>::new());
    ann.assert_untouched().await;
}

#[tokio::test]
async fn administrator_reads_no_data_of_users() {
    let gateway = Gateway::with_agents();
    let mut root = Browser::new(&gateway);
    root.initialize("root@example.org").await;
    let mut ann = Ann::new(&gateway).await;
    let mut operations = operations(&mut ann.browser).await;
    // The deletion of an account is tested elsewhere.
    operations.retain(|operation| {
        operation.method != "DELETE" || !operation.path.contains("/v1/admin/users")
    });
    let found = offences(&ann, &mut root, &operations, &[], |_, _| true).await;
    assert_eq!(found, Vec::<String>::new());
    ann.assert_untouched().await;
}

#[tokio::test]
async fn role_without_rights_is_refused_on_threads_and_runs() {
    let gateway = Gateway::with_agents();
    let mut ann = Ann::new(&gateway).await;
    let operations = operations(&mut ann.browser).await;
    let mut bob = Browser::new(&gateway);
    bob.register("bob@example.org").await;
    *gateway.accounts.access.0.lock() = Some(RoleRules::nothing());
    let refused = |operation: &Operation, response: &HttpResponse| {
        let path = without_prefix(&operation.path);
        let is_ruled = ["/threads", "/runs", "/scheduled-tasks"]
            .iter()
            .any(|prefix| path == *prefix || path.starts_with(&format!("{prefix}/")));
        !is_ruled || matches!(response.code(), 401 | 403)
    };
    let found = offences(&ann, &mut bob, &operations, &[], refused).await;
    assert_eq!(found, Vec::<String>::new());
    let mut bob = Browser::new(&gateway);
    bob.login("bob@example.org", PASSWORD).await;
    let models = bob.get("/api/models").await.json();
    assert_eq!(models["models"], json!([]));
    assert_eq!(bob.get("/api/models/fake").await.code(), 403);
    *gateway.accounts.access.0.lock() = None;
    assert_eq!(bob.get("/api/models/fake").await.code(), 200);
    ann.assert_untouched().await;
}
