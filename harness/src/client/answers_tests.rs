//! Tests of the client methods outside of runs: results, missing items, and rejected input.

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

#[tokio::test]
async fn memory_is_read_imported_and_cleared() {
    let client = TestClient::new().client;
    assert_eq!(
        client.get_memory().await.unwrap(),
        MemoryDocument::default()
    );
    let fact = json!({ "content": "likes tea", "confidence": 0.9 });
    let document = MemoryDocument {
        facts: vec![serde_json::from_value(fact).unwrap()],
        ..MemoryDocument::default()
    };
    let imported = client.import_memory(document.clone()).await.unwrap();
    assert_eq!(
        (imported.facts.len(), imported.facts[0].id.is_empty()),
        (1, false)
    );
    assert_eq!(client.reload_memory().await.unwrap(), imported);
    let status = client.get_memory_status().await.unwrap();
    assert_eq!(
        (
            status.data,
            status.config.enabled,
            &*status.config.manager_class
        ),
        (imported.clone(), true, "deermem")
    );
    assert_eq!(
        json!(client.get_memory_config().unwrap())["mode"],
        "middleware"
    );
    let beyond = Fact {
        content: "x".repeat(10_001),
        ..document.facts[0].clone()
    };
    let refused = client
        .import_memory(MemoryDocument {
            facts: vec![beyond],
            ..MemoryDocument::default()
        })
        .await;
    assert!(
        matches!(refused, Err(ClientError::Import(_))),
        "{refused:?}"
    );
    assert_eq!(client.get_memory().await.unwrap(), imported);
    assert!(client.clear_memory().await.unwrap().facts.is_empty());
}

#[tokio::test]
async fn facts_are_added_changed_and_deleted() {
    let client = TestClient::new().client;
    let added = client
        .create_memory_fact(" likes tea ", "preference", 0.8)
        .await
        .unwrap();
    let [fact] = &added.facts[..] else {
        panic!("{added:?}")
    };
    assert_eq!(
        (&*fact.content, &*fact.category, fact.is_manual()),
        ("likes tea", "preference", true)
    );
    let again = client
        .create_memory_fact("Likes  tea", "context", 0.5)
        .await;
    assert!(
        matches!(again, Err(ClientError::Memory(MemoryError::Duplicate))),
        "{again:?}"
    );
    let confidence_change = FactChange {
        confidence: Some(1.0),
        ..FactChange::default()
    };
    let corrected = client
        .update_memory_fact(&fact.id, &confidence_change)
        .await
        .unwrap();
    assert_eq!(
        (&*corrected.facts[0].content, corrected.facts[0].confidence),
        ("likes tea", 1.0)
    );
    for (content, category, confidence) in [
        (" ", "context", 0.5),
        ("x", "", 0.5),
        ("x", "context", f64::NAN),
    ] {
        let refused = client
            .create_memory_fact(content, category, confidence)
            .await;
        assert!(matches!(refused, Err(ClientError::Fact(_))), "{refused:?}");
    }
    let blank = FactChange {
        content: Some(String::new()),
        ..FactChange::default()
    };
    assert!(matches!(
        client.update_memory_fact(&fact.id, &blank).await,
        Err(ClientError::Fact(_))
    ));
    assert_eq!(
        client.get_memory().await.unwrap(),
        corrected,
        "rejected input changes nothing"
    );
    assert!(
        client
            .delete_memory_fact(&fact.id)
            .await
            .unwrap()
            .facts
            .is_empty()
    );
    let gone = client.delete_memory_fact(&fact.id).await;
    assert!(
        matches!(gone, Err(ClientError::Memory(MemoryError::NoFact(_)))),
        "{gone:?}"
    );
}

#[tokio::test]
async fn uploads_get_unique_names_and_are_deleted() {
    let test = TestClient::new();
    std::fs::create_dir(test.folder.path().join("other")).unwrap();
    let paths = [test.put("a.txt", "one"), test.put("other/a.txt", "other")];
    let uploaded = test
        .client
        .upload_files(&test.thread, &paths)
        .await
        .unwrap();
    let [first, second] = &uploaded.files[..] else {
        panic!("{uploaded:?}")
    };
    assert_eq!(
        (
            &*first.filename,
            &*second.filename,
            second.original_filename.as_deref()
        ),
        ("a.txt", "a_1.txt", Some("a.txt"))
    );
    assert_eq!(
        std::fs::read_to_string(&second.path).unwrap(),
        "other",
        "paths are host paths"
    );
    assert_eq!(second.virtual_path, "/mnt/user-data/uploads/a_1.txt");
    let listed = test.client.list_uploads(&test.thread).await.unwrap();
    assert_eq!(
        (
            listed.count,
            &listed.files[1].path,
            listed.files[1].extension.as_deref()
        ),
        (2, &second.path, Some(".txt"))
    );
    assert_eq!(
        test.client
            .delete_upload(&test.thread, "a.txt")
            .await
            .unwrap()
            .message,
        "Deleted a.txt"
    );
    let again = test.client.delete_upload(&test.thread, "a.txt").await;
    assert!(
        matches!(again, Err(ClientError::Upload(UploadError::NotFound(_)))),
        "{again:?}"
    );
    for name in [
        "../a_1.txt",
        "/etc/passwd",
        "..",
        "",
        "x/../a_1.txt",
        "a\\b",
    ] {
        let refused = test.client.delete_upload(&test.thread, name).await;
        assert!(
            matches!(refused, Err(ClientError::Upload(UploadError::InvalidName))),
            "{name}: {refused:?}"
        );
    }
    assert_eq!(test.uploads().await, ["a_1.txt"]);
}

#[tokio::test]
async fn upload_with_one_invalid_file_adds_none() {
    let test = TestClient::new();
    let good = test.put("good.txt", "good");
    let upload = async |other: PathBuf| {
        test.client
            .upload_files(&test.thread, &[good.clone(), other])
            .await
            .unwrap_err()
    };
    assert!(matches!(
        upload(test.folder.path().join("none")).await,
        ClientError::NotFound(_)
    ));
    assert!(matches!(
        upload(test.folder.path().to_owned()).await,
        ClientError::NotAFile(_)
    ));
    assert!(matches!(
        upload(good.join("beneath")).await,
        ClientError::NotFound(_)
    ));
    let pipe = test.folder.path().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert!(
        matches!(upload(pipe).await, ClientError::NotAFile(_)),
        "opening a pipe without a writer must not block"
    );
    assert!(matches!(
        upload(test.put("large", "12345678901")).await,
        ClientError::Upload(UploadError::FileTooLarge(_))
    ));
    let refused = test
        .client
        .upload_files(&test.thread, &[&good, &good, &good])
        .await;
    assert!(
        matches!(refused, Err(ClientError::Upload(UploadError::TooMany(2)))),
        "{refused:?}"
    );
    let none: [&str; 0] = [];
    let refused = test.client.upload_files(&test.thread, &none).await;
    assert!(
        matches!(refused, Err(ClientError::Upload(UploadError::Nothing))),
        "{refused:?}"
    );
    assert_eq!(test.uploads().await, [""; 0]);
}

#[tokio::test]
async fn artifacts_are_limited_to_the_thread() {
    let test = TestClient::new();
    let write = async |path: &str, text: &str| {
        let path = VirtualPath::parse(path).unwrap();
        test.files()
            .write_text(&path, text.to_owned(), WriteMode::Replace)
            .await
            .unwrap();
    };
    write("/mnt/user-data/outputs/a.html", "<p>").await;
    let get = async |path: &str| test.client.get_artifact(&test.thread, path).await;
    for path in [
        "/mnt/user-data/outputs/a.html",
        "mnt/user-data/outputs/a.html",
    ] {
        assert_eq!(
            get(path).await.unwrap(),
            (b"<p>".to_vec(), "text/html; charset=utf-8".to_owned())
        );
    }
    let secret = test.put("secret", "canary");
    let outputs = test.files().blocking().dirs().host_path(Root::Outputs);
    std::os::unix::fs::symlink(secret, outputs.join("link")).unwrap();
    let why = async |path: &str| match get(path).await {
        Err(ClientError::Artifact(why)) => why,
        other => panic!("{path}: {other:?}"),
    };
    assert!(matches!(
        why("/mnt/user-data/outputs/link").await,
        ArtifactError::Traversal
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/../../../secret").await,
        ArtifactError::Traversal
    ));
    assert!(matches!(
        why("/etc/passwd").await,
        ArtifactError::OutsideUserData
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs").await,
        ArtifactError::NotAFile(_)
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/none").await,
        ArtifactError::NotFound(_)
    ));
    assert!(matches!(
        why("/mnt/user-data/outputs/none.skill/SKILL.md").await,
        ArtifactError::NotFound(_)
    ));
    let other = test
        .client
        .get_artifact(
            &ThreadId::parse("other").unwrap(),
            "/mnt/user-data/outputs/a.html",
        )
        .await;
    assert!(
        matches!(
            other,
            Err(ClientError::Artifact(ArtifactError::NotFound(_)))
        ),
        "{other:?}"
    );
}

#[tokio::test]
async fn file_inside_archive_is_an_artifact() {
    let test = TestClient::new();
    let archive = test.put(
        "web.skill",
        compressed(&[("web/SKILL.md", skill_text("web").as_bytes())]),
    );
    std::fs::create_dir_all(test.files().blocking().dirs().host_path(Root::Outputs)).unwrap();
    std::fs::copy(
        archive,
        test.files()
            .blocking()
            .dirs()
            .host_path(Root::Outputs)
            .join("web.skill"),
    )
    .unwrap();
    let get = async |name: &str| {
        test.client
            .get_artifact(
                &test.thread,
                &format!("/mnt/user-data/outputs/web.skill/{name}"),
            )
            .await
    };
    assert_eq!(
        get("SKILL.md").await.unwrap().0,
        skill_text("web").as_bytes()
    );
    assert!(matches!(
        get("none").await,
        Err(ClientError::Artifact(ArtifactError::NotInArchive(_)))
    ));
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
    let what = |error: ClientError| match error {
        ClientError::Absent(what) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(what(bare.list_models().unwrap_err()), "configuration");
    assert_eq!(what(bare.get_memory_config().unwrap_err()), "configuration");
    assert_eq!(what(client.list_skills(true).await.unwrap_err()), "skills");
    assert_eq!(
        what(client.install_skill("none.skill").await.unwrap_err()),
        "skills"
    );
    assert_eq!(what(client.get_memory().await.unwrap_err()), "memories");
    assert_eq!(
        what(client.get_memory_status().await.unwrap_err()),
        "memories"
    );
    assert_eq!(
        what(client.delete_memory_fact("none").await.unwrap_err()),
        "memories"
    );
    assert_eq!(
        what(client.upload_files(&thread, &["none"]).await.unwrap_err()),
        "files"
    );
    assert_eq!(
        what(client.list_uploads(&thread).await.unwrap_err()),
        "files"
    );
    assert_eq!(
        what(client.delete_upload(&thread, "none").await.unwrap_err()),
        "files"
    );
    assert_eq!(
        what(client.get_artifact(&thread, "none").await.unwrap_err()),
        "files"
    );
    #[cfg(feature = "mcp")]
    assert_eq!(
        what(client.get_mcp_config().await.unwrap_err()),
        "MCP servers"
    );
}
