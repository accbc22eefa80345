//! Tests of the client methods outside of runs: results, missing items, and rejected input.

#[path = "answers_file_tests.rs"]
mod file;
#[path = "answers_memory_tests.rs"]
mod memory;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::artifacts::ArtifactError;
use crate::config::AppConfig;
use crate::ids::ThreadId;
use crate::sandbox::{Root, ThreadFiles, VirtualPath, WriteMode};
use crate::skills::SkillError;
use crate::testkit::skill_archives::{compressed, hostile, skill_text};
use crate::uploads::UploadError;
use crate::user_memory::{Fact, FactChange, InMemoryUserMemoryStore, MemoryDocument, MemoryError};

struct TestClient {
    /// Parent folder of the home and of the embedding program's files.
    folder: TempDir,
    client: Client,
    thread: ThreadId,
}

fn config() -> AppConfig {
    let config = json!({
        "models": [{ "name": "m", "use": "scripted", "model": "s-1", "display_name": "M", "supports_thinking": true, "api_key": "canary" }],
        "uploads": { "max_files": 2, "max_file_size": 10, "max_total_size": 15 },
        "token_usage": { "enabled": false },
    });
    serde_json::from_value(config).unwrap()
}

impl TestClient {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let skill = folder.path().join("home/skills/public/web");
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), skill_text("web")).unwrap();
        let builder = Client::builder(config())
            .home(folder.path().join("home"))
            .memories(Arc::new(InMemoryUserMemoryStore::default()));
        Self {
            client: builder.build().unwrap(),
            folder,
            thread: ThreadId::parse("t").unwrap(),
        }
    }

    /// Writes a file of the embedding program.
    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn files(&self) -> ThreadFiles {
        self.client
            .installation
            .files()
            .unwrap()
            .thread("default", &self.thread)
    }

    async fn uploads(&self) -> Vec<String> {
        self.client
            .list_uploads(&self.thread)
            .await
            .unwrap()
            .files
            .into_iter()
            .map(|file| file.filename)
            .collect()
    }
}

#[tokio::test]
async fn models_are_listed_without_secrets() {
    let test = TestClient::new();
    let models = test.client.list_models().unwrap();
    let expected = json!({
        "models": [{
            "name": "m", "model": "s-1", "display_name": "M", "description": null, "supports_thinking": true,
            "supports_reasoning_effort": false,
        }],
        "token_usage": { "enabled": false },
    });
    assert_eq!(json!(models), expected);
    assert_eq!(
        test.client.get_model("m").unwrap().as_ref(),
        models.models.first()
    );
    assert_eq!(test.client.get_model("M").unwrap(), None);
}

#[tokio::test]
async fn skills_are_listed_and_switched() {
    let test = TestClient::new();
    let client = &test.client;
    let web = client.get_skill("web").await.unwrap().unwrap();
    assert_eq!(
        (&*web.description, web.enabled, web.editable),
        ("Does web", true, false)
    );
    assert!(!client.update_skill("web", false).await.unwrap().enabled);
    assert_eq!(client.list_skills(false).await.unwrap().skills.len(), 1);
    assert!(client.list_skills(true).await.unwrap().skills.is_empty());
    for name in ["none", "../web", "", "\u{0}"] {
        assert_eq!(client.get_skill(name).await.unwrap(), None, "{name}");
        let refused = client.update_skill(name, true).await;
        assert!(
            matches!(refused, Err(ClientError::Skill(SkillError::NotFound(_)))),
            "{name}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn skill_is_installed_once_and_only_from_archive() {
    let test = TestClient::new();
    let install = async |path: PathBuf| test.client.install_skill(path).await;
    let good = test.put(
        "own.skill",
        compressed(&[("own/SKILL.md", skill_text("own").as_bytes())]),
    );
    let installed = install(good.clone()).await.unwrap();
    assert_eq!(
        (&*installed.skill_name, &*installed.message),
        ("own", "Skill 'own' installed successfully")
    );
    assert!(
        test.client
            .get_skill("own")
            .await
            .unwrap()
            .unwrap()
            .editable
    );
    assert!(matches!(
        install(good).await,
        Err(ClientError::Skill(SkillError::Exists(_)))
    ));
    assert!(matches!(
        install(test.folder.path().join("none.skill")).await,
        Err(ClientError::NotFound(_))
    ));
    let folder = test.folder.path().join("folder.skill");
    std::fs::create_dir(&folder).unwrap();
    assert!(matches!(
        install(folder).await,
        Err(ClientError::NotAFile(_))
    ));
    assert!(matches!(
        install(test.put("a.zip", "")).await,
        Err(ClientError::Skill(SkillError::Refused(_)))
    ));
    for (name, bytes) in hostile() {
        let refused = install(test.put("evil.skill", bytes)).await;
        assert!(
            matches!(refused, Err(ClientError::Skill(_))),
            "{name}: {refused:?}"
        );
    }
    assert_eq!(
        test.client.list_skills(false).await.unwrap().skills.len(),
        2
    );
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn mcp_servers_are_replaced_and_listed_without_secrets() {
    use crate::mcp::settings::McpPortError;

    let test = TestClient::new();
    let client = &test.client;
    let update = async |servers: serde_json::Value| {
        client
            .update_mcp_config(servers.as_object().cloned().unwrap())
            .await
    };
    assert_eq!(
        json!(client.get_mcp_config().await.unwrap()),
        json!({ "mcp_servers": {} })
    );
    let server = json!({ "s": { "enabled": false, "command": "npx", "args": ["-y", "pkg"], "env": { "KEY": "canary" } } });
    let shown = update(server).await.unwrap();
    assert_eq!(shown.mcp_servers["s"]["env"]["KEY"], "***");
    assert_eq!(client.get_mcp_config().await.unwrap(), shown);
    assert_eq!(
        update(json!(shown.mcp_servers)).await.unwrap(),
        shown,
        "redacted values may be sent back"
    );
    let refused = update(json!({ "s": { "enabled": false, "command": "bash" } })).await;
    assert!(
        matches!(refused, Err(ClientError::Mcp(McpPortError::Refused(_)))),
        "{refused:?}"
    );
    let refused = update(json!({ "s": 5 })).await;
    assert!(
        matches!(refused, Err(ClientError::McpServers(_))),
        "{refused:?}"
    );
    assert_eq!(
        client.get_mcp_config().await.unwrap(),
        shown,
        "rejected input changes nothing"
    );
    assert_eq!(update(json!({})).await.unwrap().mcp_servers.len(), 0);
}

#[tokio::test]
async fn method_without_required_part_returns_absent() {
    let client = Client::builder(config()).build().unwrap();
    let bare = client.clone().installation(Installation::default());
    let thread = ThreadId::parse("t").unwrap();
    let describe = |error: ClientError| match error {
        ClientError::Absent(part) => part,
        other => panic!("{other:?}"),
    };
    assert_eq!(describe(bare.list_models().unwrap_err()), "configuration");
    assert_eq!(
        describe(bare.get_memory_config().unwrap_err()),
        "configuration"
    );
    assert_eq!(
        describe(client.list_skills(true).await.unwrap_err()),
        "skills"
    );
    assert_eq!(
        describe(client.install_skill("none.skill").await.unwrap_err()),
        "skills"
    );
    assert_eq!(describe(client.get_memory().await.unwrap_err()), "memories");
    assert_eq!(
        describe(client.get_memory_status().await.unwrap_err()),
        "memories"
    );
    assert_eq!(
        describe(client.delete_memory_fact("none").await.unwrap_err()),
        "memories"
    );
    assert_eq!(
        describe(client.upload_files(&thread, &["none"]).await.unwrap_err()),
        "files"
    );
    assert_eq!(
        describe(client.list_uploads(&thread).await.unwrap_err()),
        "files"
    );
    assert_eq!(
        describe(client.delete_upload(&thread, "none").await.unwrap_err()),
        "files"
    );
    assert_eq!(
        describe(client.get_artifact(&thread, "none").await.unwrap_err()),
        "files"
    );
    #[cfg(feature = "mcp")]
    assert_eq!(
        describe(client.get_mcp_config().await.unwrap_err()),
        "MCP servers"
    );
}
