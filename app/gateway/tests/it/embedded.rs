//! The embedded client and the gateway give the same results over the same folders and the same
//! configuration.

use std::path::PathBuf;
use std::sync::Arc;

use deerflow_gateway::queries::thread_index::GatewayThreadIndex;
use harness::client::{Client, ClientError, Installation};
use harness::documents::DocumentReader;
use harness::ids::ThreadId;
use harness::middlewares::goal::GoalError;
use harness::runtime::actor_context::{ActorContext, scope};
use harness::runtime::threads::ThreadError;
use harness::testkit::skill_archives::{compressed, skill_text};
use harness::testkit::thread_index;
use harness::user_memory::{FactChange, MemoryDocument};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::support::{Gateway, HttpResponse, config, saying};
use crate::uploads::{BOUNDARY, Plain, form};

/// A client and a gateway over the same folders, and a folder of the embedding program.
struct Both {
    gateway: Gateway,
    client: Client,
    thread: ThreadId,
    own: tempfile::TempDir,
}

impl Both {
    async fn new() -> Self {
        let reader: Arc<dyn DocumentReader> = Arc::new(Plain::default());
        let gateway = Gateway::with_documents(reader.clone());
        let installation = Installation {
            config: Some(Arc::new(Arc::new(config()))),
            files: Some(gateway.files.home.clone()),
            documents: Some(reader),
            skills: Some(gateway.state.skills.clone()),
            memories: Some(gateway.state.user_memories.clone()),
            threads: Some(Arc::new(GatewayThreadIndex(gateway.state.clone()))),
            mcp: Some(gateway.state.mcp.clone()),
        };
        let client = Client::new(gateway.runs.clone()).installation(installation);
        let thread = ThreadId::parse(gateway.thread().await).expect("an id");
        Self {
            gateway,
            client,
            thread,
            own: tempfile::tempdir().expect("a folder"),
        }
    }

    /// Writes a file of the embedding program.
    fn put(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.own.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    async fn get(&self, path: &str) -> HttpResponse {
        self.gateway.get(path).await
    }

    fn of_thread(&self, path: &str) -> String {
        format!("/api/threads/{}/{path}", self.thread)
    }
}

/// Asserts that the client and the gateway give the same result, byte for byte.
#[track_caller]
fn assert_same(response: &HttpResponse, result: &impl Serialize) {
    assert_eq!(response.code(), 200, "{}", response.text());
    // The order of fields counts, too.
    assert_eq!(response.text(), json!(result).to_string());
}

/// Asserts that the client and the gateway fail with the same text, except for the first letter's
/// case.
#[track_caller]
fn assert_same_error(
    response: &HttpResponse,
    code: u16,
    result: Result<impl std::fmt::Debug, ClientError>,
) {
    let detail = response.json()["detail"].as_str().map(str::to_lowercase);
    let result = result.expect_err("a refusal").to_string().to_lowercase();
    assert_eq!((response.code(), detail.as_deref()), (code, Some(&*result)));
}

#[tokio::test]
async fn models_and_memory_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    assert_same(
        &both.get("/api/models").await,
        &client.list_models().expect("models"),
    );
    assert_same(
        &both.get("/api/models/fake").await,
        &client.get_model("fake").expect("models"),
    );
    assert_eq!(
        (
            both.get("/api/models/none").await.code(),
            client.get_model("none").expect("models")
        ),
        (404, None)
    );
    let fact = json!({ "content": "likes tea", "category": "preference", "confidence": 0.8 });
    both.gateway.post("/api/memory/facts", fact).await;
    assert_same(
        &both.get("/api/memory").await,
        &client.get_memory().await.expect("a memory"),
    );
    assert_same(
        &both.gateway.post("/api/memory/reload", json!({})).await,
        &client.reload_memory().await.expect("a memory"),
    );
    assert_same(
        &both.get("/api/memory/config").await,
        &client.get_memory_config().expect("a configuration"),
    );
    assert_same(
        &both.get("/api/memory/status").await,
        &client.get_memory_status().await.expect("a memory"),
    );
    let export: MemoryDocument =
        serde_json::from_value(both.get("/api/memory/export").await.json()).expect("a memory");
    let cleared = client.clear_memory().await.expect("cleared");
    assert_same(&both.get("/api/memory").await, &cleared);
    let imported = client.import_memory(export).await.expect("imported");
    assert_eq!(imported.facts.len(), 1);
    assert_same(&both.get("/api/memory").await, &imported);
}

#[tokio::test]
async fn memory_fact_operations_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    let added = client
        .create_memory_fact("likes tea", "preference", 0.8)
        .await
        .expect("added");
    assert_same(&both.get("/api/memory").await, &added);
    let path = format!("/api/memory/facts/{}", added.facts[0].id);
    let change = FactChange {
        confidence: Some(1.0),
        ..FactChange::default()
    };
    let corrected = client
        .update_memory_fact(&added.facts[0].id, &change)
        .await
        .expect("corrected");
    assert_same(&both.get("/api/memory").await, &corrected);
    let twice = both
        .gateway
        .post("/api/memory/facts", json!({ "content": "Likes tea" }))
        .await;
    assert_same_error(
        &twice,
        409,
        client.create_memory_fact("Likes tea", "context", 0.5).await,
    );
    for body in [
        json!({ "content": " " }),
        json!({ "content": "x", "category": "x".repeat(65) }),
        json!({ "content": "x", "confidence": 2 }),
    ] {
        let response = both.gateway.post("/api/memory/facts", body.clone()).await;
        let category = body["category"].as_str().unwrap_or("context");
        let result = client.create_memory_fact(
            body["content"].as_str().expect("a text"),
            category,
            body["confidence"].as_f64().unwrap_or(0.5),
        );
        let Err(ClientError::Fact(issues)) = result.await else {
            panic!("{body}")
        };
        let (issue, detail) = (&issues[0], response.json()["detail"][0].clone());
        assert_eq!(
            (response.code(), &detail["loc"][1], &detail["msg"]),
            (422, &json!(issue.field), &json!(issue.message))
        );
    }
    assert_same(
        &both.gateway.send("DELETE", &path, None).await,
        &client.get_memory().await.expect("a memory"),
    );
    assert_eq!(both.gateway.send("DELETE", &path, None).await.code(), 404);
    client
        .delete_memory_fact(&added.facts[0].id)
        .await
        .expect_err("the fact is removed");
}

#[tokio::test]
async fn goals_are_equal() {
    let both = Both::new().await;
    let (client, path) = (&both.client, both.of_thread("goal"));
    assert_same(
        &both.get(&path).await,
        &client.get_goal(&both.thread).await.expect("no goal"),
    );
    let put = both
        .gateway
        .send("PUT", &path, Some(json!({ "objective": " Ship it " })))
        .await;
    let result = client.get_goal(&both.thread).await.expect("a goal");
    assert_eq!(
        result.goal.as_ref().map(|goal| &*goal.objective),
        Some("Ship it")
    );
    assert_same(&put, &result);
    let set = client
        .set_goal(&both.thread, " Rest ")
        .await
        .expect("a goal");
    assert_same(&both.get(&path).await, &set);
    for objective in [" ".to_owned(), "x".repeat(4_001)] {
        let response = both
            .gateway
            .send("PUT", &path, Some(json!({ "objective": objective })))
            .await;
        let Err(ClientError::Goal(GoalError::Objective(issue))) =
            client.set_goal(&both.thread, &objective).await
        else {
            panic!()
        };
        assert_eq!(
            (response.code(), &response.json()["detail"][0]["msg"]),
            (422, &json!(issue.to_string()))
        );
    }
    let run = both
        .gateway
        .post(&both.of_thread("runs"), saying("slow"))
        .await
        .json()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(both.gateway.send("DELETE", &path, None).await.code(), 409);
    assert!(matches!(
        client.clear_goal(&both.thread).await,
        Err(ClientError::Goal(GoalError::Busy(_)))
    ));
    assert!(matches!(
        client.set_goal(&both.thread, "x").await,
        Err(ClientError::Goal(GoalError::Busy(_)))
    ));
    both.gateway
        .post(
            &both.of_thread(&format!("runs/{run}/cancel?wait=1")),
            json!({}),
        )
        .await;
    let cleared = client.clear_goal(&both.thread).await.expect("cleared");
    assert_same(&both.get(&path).await, &cleared);
    let early = ThreadId::parse("63fc735a-a27d-408f-adc4-705b1c1c7009").expect("an id");
    let set = client
        .set_goal(&early, "early")
        .await
        .expect("a goal before the first message");
    assert_same(&both.get(&format!("/api/threads/{early}/goal")).await, &set);
}

#[tokio::test]
async fn threads_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    let other = both.gateway.thread().await;
    both.gateway
        .post(&both.of_thread("runs/wait"), saying("say hi"))
        .await;
    client.set_goal(&both.thread, "more").await.expect("a goal");
    let pinned = json!({ "metadata": { "deerflow_pinned": true, "of": "mine" } });
    both.gateway
        .send("PATCH", &format!("/api/threads/{other}"), Some(pinned))
        .await;
    let listed = client
        .get_thread(&both.thread)
        .await
        .expect("threads")
        .expect("a thread");
    assert_eq!(listed.values["messages"].as_array().map(Vec::len), Some(2));
    assert_same(
        &both.get(&format!("/api/threads/{}", both.thread)).await,
        &listed,
    );
    let listed = client.list_threads(10).await.expect("threads");
    assert_eq!(
        listed
            .iter()
            .map(|thread| thread.thread_id.as_str())
            .collect::<Vec<_>>(),
        [&*other, both.thread.as_str()]
    );
    assert_same(
        &both
            .gateway
            .post("/api/threads/search", json!({ "limit": 10 }))
            .await,
        &listed,
    );
    assert_same(
        &both
            .gateway
            .post("/api/threads/search", json!({ "limit": 1 }))
            .await,
        &client.list_threads(1).await.expect("threads"),
    );

    let none = ThreadId::parse("63fc735a-a27d-408f-adc4-705b1c1c7008").expect("an id");
    assert_eq!(client.get_thread(&none).await.expect("threads"), None);
    scope(ActorContext::user("bob"), async {
        assert_eq!(
            client.get_thread(&both.thread).await.expect("threads"),
            None
        );
        assert_eq!(client.list_threads(10).await.expect("threads"), []);
        assert_eq!(
            client.get_goal(&both.thread).await.expect("no goal").goal,
            None
        );
        assert!(matches!(
            client.set_goal(&both.thread, "mine").await,
            Err(ClientError::Goal(GoalError::Thread(ThreadError::Taken(_))))
        ));
    })
    .await;
}

#[tokio::test]
async fn thread_index_satisfies_its_contract() {
    let gateway = Gateway::new();
    thread_index::satisfies_thread_index_contract(
        &GatewayThreadIndex(gateway.state.clone()),
        &*gateway.state.checkpoints,
    )
    .await;
}

#[tokio::test]
async fn skills_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    let folder = both.gateway.files.home.home().join("shared/public/web");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("SKILL.md"), skill_text("web")).expect("a skill");
    let archive = compressed(&[("own/SKILL.md", skill_text("own").as_bytes())]);
    let installed = client
        .install_skill(both.put("own.skill", &archive))
        .await
        .expect("installed");
    assert_same(
        &both.get("/api/skills").await,
        &client.list_skills(false).await.expect("skills"),
    );
    assert_same(
        &both.get("/api/skills/own").await,
        &client.get_skill("own").await.expect("a skill"),
    );
    let off = both
        .gateway
        .send("PUT", "/api/skills/web", Some(json!({ "enabled": false })))
        .await;
    assert_same(&off, &client.get_skill("web").await.expect("a skill"));
    let on = client.update_skill("web", true).await.expect("a skill");
    assert_same(&both.get("/api/skills/web").await, &on);
    let none = both
        .gateway
        .send("PUT", "/api/skills/none", Some(json!({ "enabled": true })))
        .await;
    assert_same_error(&none, 404, client.update_skill("none", true).await);

    // The same archive again, by the other method.
    both.gateway
        .send("DELETE", "/api/skills/custom/own", None)
        .await;
    client
        .upload_files(&both.thread, &[both.put("own.skill", &archive)])
        .await
        .expect("uploaded");
    let body =
        json!({ "thread_id": both.thread.as_str(), "path": "/mnt/user-data/uploads/own.skill" });
    assert_same(
        &both.gateway.post("/api/skills/install", body.clone()).await,
        &installed,
    );
    assert_same_error(
        &both.gateway.post("/api/skills/install", body).await,
        409,
        client.install_skill(both.put("own.skill", &archive)).await,
    );
}

#[tokio::test]
async fn mcp_servers_are_equal() {
    let both = Both::new().await;
    let client = &both.client;
    let servers =
        json!({ "s": { "command": "npx", "args": ["-y", "pkg"], "env": { "KEY": "canary" } } });
    let updated = client
        .update_mcp_config(servers.as_object().cloned().expect("an object"))
        .await
        .expect("updated");
    assert!(!json!(updated).to_string().contains("canary"));
    assert_same(&both.get("/api/mcp/config").await, &updated);
    let put = both
        .gateway
        .send("PUT", "/api/mcp/config", Some(json!(updated)))
        .await;
    assert_same(&put, &client.get_mcp_config().await.expect("servers"));
    let shell = json!({ "s": { "command": "bash" } });
    let put = both
        .gateway
        .send(
            "PUT",
            "/api/mcp/config",
            Some(json!({ "mcp_servers": shell })),
        )
        .await;
    assert_same_error(
        &put,
        400,
        client
            .update_mcp_config(shell.as_object().cloned().expect("an object"))
            .await,
    );
    let malformed: Map<String, Value> = [("s".to_owned(), json!({ "args": 5 }))]
        .into_iter()
        .collect();
    let put = both
        .gateway
        .send(
            "PUT",
            "/api/mcp/config",
            Some(json!({ "mcp_servers": malformed.clone() })),
        )
        .await;
    assert_eq!(
        (put.code(), &put.json()["detail"][0]["loc"]),
        (422, &json!(["body", "mcp_servers", "s", "args"]))
    );
    assert!(matches!(
        client.update_mcp_config(malformed).await,
        Err(ClientError::McpServers(_))
    ));
}

#[tokio::test]
async fn uploads_are_equal_except_for_host_paths() {
    let both = Both::new().await;
    let client = &both.client;
    let other = ThreadId::parse(both.gateway.thread().await).expect("an id");
    let (plan, notes) = (
        both.put("plan.pdf", b"the plan"),
        both.put("a b.txt", b"notes"),
    );
    let uploaded = client
        .upload_files(&both.thread, &[&plan, &notes, &notes])
        .await
        .expect("uploaded");
    let parts: [(&str, &str, &[u8]); 3] = [
        ("files", "plan.pdf", b"the plan"),
        ("files", "a b.txt", b"notes"),
        ("files", "a b.txt", b"notes"),
    ];
    let response = both
        .gateway
        .raw(
            "POST",
            &format!("/api/threads/{other}/uploads"),
            form(&parts),
            &[BOUNDARY],
        )
        .await;
    let here = |text: &str| text.replace(other.as_str(), both.thread.as_str());
    let virtually = |result: Value| {
        let mut result = result;
        for file in result["files"].as_array_mut().expect("files") {
            let path = file["path"].as_str().expect("a path");
            assert!(
                path.starts_with(both.gateway.files.home.home().to_str().expect("a path"))
                    && PathBuf::from(path).is_file()
            );
            file["path"] = file["virtual_path"].clone();
            file["markdown_path"] = file["markdown_virtual_path"].clone();
        }
        result.to_string()
    };
    assert_eq!(uploaded.files[0].markdown_file.as_deref(), Some("plan.md"));
    assert_eq!(
        (response.code(), here(response.text())),
        (200, virtually(json!(uploaded)))
    );
    let listed = client.list_uploads(&both.thread).await.expect("a list");
    assert_eq!(listed.count, 4);
    assert_eq!(
        both.get(&both.of_thread("uploads/list")).await.text(),
        virtually(json!(listed))
    );

    let deleted = client
        .delete_upload(&both.thread, "plan.pdf")
        .await
        .expect("deleted");
    let again = both
        .gateway
        .send(
            "DELETE",
            &format!("/api/threads/{other}/uploads/plan.pdf"),
            None,
        )
        .await;
    assert_same(&again, &deleted);
    for (name, segment, code) in [
        ("plan.pdf", "plan.pdf", 404),
        ("..", "%2e%2e", 400),
        ("../a b.txt", "..%2fa%20b.txt", 400),
    ] {
        let refused = both
            .gateway
            .send(
                "DELETE",
                &both.of_thread(&format!("uploads/{segment}")),
                None,
            )
            .await;
        assert_same_error(
            &refused,
            code,
            client.delete_upload(&both.thread, name).await,
        );
    }
}

#[tokio::test]
async fn artifacts_are_equal() {
    let both = Both::new().await;
    let archive = compressed(&[("own/SKILL.md", skill_text("own").as_bytes())]);
    let paths = [both.put("a.html", b"<p>"), both.put("own.skill", &archive)];
    both.client
        .upload_files(&both.thread, &paths)
        .await
        .expect("uploaded");
    for path in [
        "mnt/user-data/uploads/a.html",
        "mnt/user-data/uploads/own.skill",
        "mnt/user-data/uploads/own.skill/SKILL.md",
    ] {
        let response = both
            .get(&both.of_thread(&format!("artifacts/{path}")))
            .await;
        let (bytes, media_type) = both
            .client
            .get_artifact(&both.thread, path)
            .await
            .expect("an artifact");
        assert_eq!(
            (
                response.code(),
                response.header("content-type"),
                &*response.body
            ),
            (200, &*media_type, &*bytes),
            "{path}"
        );
    }
    for (path, code) in [
        ("mnt/user-data/uploads/none", 404),
        ("mnt/user-data/uploads/own.skill/none", 404),
        ("mnt/user-data/uploads", 400),
        ("etc/passwd", 400),
        ("mnt/user-data/uploads/%2e%2e/%2e%2e/x", 403),
    ] {
        let response = both
            .get(&both.of_thread(&format!("artifacts/{path}")))
            .await;
        assert_same_error(
            &response,
            code,
            both.client
                .get_artifact(&both.thread, &path.replace("%2e", "."))
                .await,
        );
    }
}
