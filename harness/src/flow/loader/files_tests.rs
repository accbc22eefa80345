//! Documents and prompts of a thread's files.

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::agents::test_support::context;
use crate::flow::machine::RunInput;
use crate::runtime::actor_context::ActorContext;
use crate::sandbox::FileLimits;
use crate::sandbox::pending_file::Durability;

struct Bench {
    home: FileHome,
    run: RunContext,
    _folder: tempfile::TempDir,
}

impl Bench {
    async fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = FileHome::new(folder.path(), FileLimits::default());
        let run = context(1).0;
        let thread = home.thread(&run.actor.user_id, &run.thread_id);
        for (path, text) in files {
            let path = VirtualPath::parse(path).unwrap();
            let content = Bytes::copy_from_slice(text);
            let written = thread.write_bytes(&path, content, Durability::Cached).await;
            written.unwrap();
        }
        Self {
            home,
            run,
            _folder: folder,
        }
    }

    async fn load(&self, kind: LoaderKind, config: Value) -> Result<Option<Value>, FlowError> {
        let (actor, input) = (ActorContext::user("ann"), RunInput::default());
        let request = LoadRequest {
            node_id: "load",
            kind,
            config: config.as_object().unwrap(),
            input: &input,
            actor: &actor,
            context: Some(&self.run),
        };
        load(&self.home, &request).await
    }

    async fn text(&self, path: &str) -> Result<String, FlowError> {
        let actor = ActorContext::user("ann");
        let request = TextRequest {
            path,
            actor: &actor,
            context: Some(&self.run),
        };
        read_text(&self.home, &request).await
    }
}

#[tokio::test]
async fn folder_of_the_thread_is_loaded_with_relative_paths() {
    let bench = Bench::with(&[
        ("/mnt/user-data/uploads/a/b.md", b"B"),
        ("/mnt/user-data/uploads/c.txt", b"C"),
        ("/mnt/user-data/uploads/d.bin", &[0xff, 0]),
        ("/mnt/user-data/workspace/e.md", b"E"),
    ])
    .await;
    let uploads = json!({"directory": "/mnt/user-data/uploads/"});
    let loaded = bench.load(LoaderKind::LocalDir, uploads).await.unwrap();
    let expected = json!([
        {"path": "a/b.md", "content": "B", "size": 1},
        {"path": "c.txt", "content": "C", "size": 1},
    ]);
    assert_eq!(loaded, Some(expected));
    let workspace = bench.load(LoaderKind::WorkDir, json!({})).await.unwrap();
    assert_eq!(workspace.unwrap()[0]["path"], "e.md");
}

#[tokio::test]
async fn node_without_a_folder_loads_nothing() {
    let bench = Bench::with(&[]).await;
    for kind in [LoaderKind::WorkDir, LoaderKind::LocalDir] {
        assert_eq!(bench.load(kind, json!({})).await, Ok(None));
    }
    let named = json!({"directory": "/mnt/user-data/uploads"});
    let loaded = bench.load(LoaderKind::LocalDir, named).await.unwrap();
    assert_eq!(loaded, Some(json!([])));
}

#[tokio::test]
async fn paths_out_of_the_threads_files_are_refused() {
    let bench = Bench::with(&[]).await;
    for directory in ["/etc", "docs", "/mnt/user-data/../../etc", "/mnt/skills"] {
        let config = json!({"directory": directory});
        let error = bench.load(LoaderKind::LocalDir, config).await.unwrap_err();
        assert_eq!(error.code, "invalid_config", "{directory}");
    }
    assert_eq!(
        bench.text("/etc/passwd").await.unwrap_err().code,
        "invalid_config"
    );
}

#[tokio::test]
async fn prompt_file_is_a_text_of_the_thread() {
    let bench = Bench::with(&[
        ("/mnt/user-data/uploads/p.md", b"PROMPT"),
        ("/mnt/user-data/uploads/q.bin", &[0xff]),
    ])
    .await;
    let text = bench.text("/mnt/user-data/uploads/p.md").await;
    assert_eq!(text.as_deref(), Ok("PROMPT"));
    for path in [
        "/mnt/user-data/uploads/q.bin",
        "/mnt/user-data/uploads/none.md",
    ] {
        assert_eq!(bench.text(path).await.unwrap_err().code, "loader_failed");
    }
}
