//! Models, memory, skills and MCP servers.

use harness::client::ClientError;
use harness::testkit::skill_archives::{compressed, skill_text};
use harness::user_memory::{FactChange, MemoryDocument};
use serde_json::{Map, Value, json};

use super::{Both, assert_same, assert_same_error};

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
