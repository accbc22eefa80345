//! Tests of the file tools on a real directory.

#[path = "builtins_argument_tests.rs"]
mod argument;
#[path = "builtins_upload_tests.rs"]
mod upload;

use serde_json::{Value, json};

use super::*;
use crate::sandbox::{FileLimits, Mount, Mounts};
use crate::testkit::tool_context;
use crate::tools::{Effect, ToolRegistry, erase};

struct Fixture {
    _dir: tempfile::TempDir,
    tools: ToolRegistry,
    ctx: ToolContext,
}

fn fixture() -> Fixture {
    fixture_with(Mounts::default())
}

fn fixture_with(mounts: Mounts) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let home = FileHome::new(dir.path(), FileLimits::default()).with_mounts(mounts);
    let mut tools = ToolRegistry::new();
    tools.add(erase(Ls {
        home: home.clone(),
        max_chars: 20_000,
    }));
    tools.add(erase(ReadFile {
        home: home.clone(),
        max_chars: 50_000,
    }));
    tools.add(erase(WriteFile { home: home.clone() }));
    tools.add(erase(StrReplace { home: home.clone() }));
    tools.add(erase(Glob {
        home: home.clone(),
        max_results: None,
    }));
    tools.add(erase(Grep {
        home: home.clone(),
        max_results: None,
    }));
    tools.add(erase(ListUploadedFiles { home: home.clone() }));
    tools.add(erase(PresentFiles { home }));
    Fixture {
        _dir: dir,
        tools,
        ctx: tool_context(),
    }
}

impl Fixture {
    async fn call(&self, tool: &str, args: Value) -> Result<ToolOutput, String> {
        let Value::Object(args) = args else {
            panic!("arguments are an object")
        };
        self.tools
            .get(tool)
            .unwrap()
            .call(args, &self.ctx)
            .await
            .map_err(|error| error.to_string())
    }

    async fn text(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.unwrap().content.text()
    }
}

#[tokio::test]
async fn file_is_written_listed_read_changed_and_presented() {
    let fixture = fixture();
    let path = "/mnt/user-data/outputs/notes/a.md";
    assert_eq!(
        fixture
            .text(
                "write_file",
                json!({ "description": "try", "path": path, "content": "one\ntwo\n" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        fixture
            .text(
                "write_file",
                json!({ "path": path, "content": "three\n", "append": true })
            )
            .await,
        "OK"
    );
    assert_eq!(
        fixture
            .text(
                "str_replace",
                json!({ "path": path, "old_str": "two", "new_str": "2" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        fixture
            .text(
                "read_file",
                json!({ "path": path, "start_line": 2, "end_line": 3 })
            )
            .await,
        "2\nthree"
    );
    let listed = fixture
        .text("ls", json!({ "path": "/mnt/user-data/outputs" }))
        .await;
    assert_eq!(
        listed,
        "/mnt/user-data/outputs/notes/\n/mnt/user-data/outputs/notes/a.md"
    );
    let presented = fixture
        .call("present_files", json!({ "filepaths": [path] }))
        .await
        .unwrap();
    assert_eq!(presented.update.channels["artifacts"], json!([path]));
}

#[tokio::test]
async fn files_are_found_by_name_and_content() {
    let fixture = fixture();
    let root = "/mnt/user-data/workspace";
    for (name, content) in [("a.md", "one\ntwo\n"), ("b/c.md", "two\n")] {
        fixture
            .text(
                "write_file",
                json!({ "path": format!("{root}/{name}"), "content": content }),
            )
            .await;
    }
    let found = fixture
        .text(
            "glob",
            json!({ "description": "d", "pattern": "**/*.md", "path": root }),
        )
        .await;
    assert_eq!(
        found,
        format!("Found 2 paths under {root}\n1. {root}/a.md\n2. {root}/b/c.md")
    );
    let found = fixture
        .text(
            "grep",
            json!({ "description": "d", "pattern": "TWO", "path": root, "max_results": 1 }),
        )
        .await;
    assert!(
        found.starts_with(&format!(
            "Found 1 matches under {root} (showing first 1)\n{root}/a.md:2: two\n..."
        )),
        "{found}"
    );
    assert_eq!(
        fixture
            .text(
                "grep",
                json!({ "pattern": "TWO", "path": root, "case_sensitive": true })
            )
            .await,
        format!("No matches under {root}")
    );
    for (tool, args) in [
        ("grep", json!({ "pattern": "(", "path": root })),
        ("grep", json!({ "pattern": "x", "path": "/etc" })),
        (
            "grep",
            json!({ "pattern": "x", "path": root, "glob": "a{" }),
        ),
        ("glob", json!({ "pattern": "x{", "path": root })),
        (
            "glob",
            json!({ "pattern": "*", "path": root, "max_results": -1 }),
        ),
    ] {
        assert!(
            fixture
                .call(tool, args.clone())
                .await
                .unwrap_err()
                .starts_with("Error:"),
            "{args}"
        );
    }
}

#[tokio::test]
async fn only_existing_files_in_outputs_are_presented() {
    let fixture = fixture();
    fixture
        .text(
            "write_file",
            json!({ "path": "/mnt/user-data/workspace/a", "content": "x" }),
        )
        .await;
    fixture
        .text(
            "write_file",
            json!({ "path": "/mnt/user-data/outputs/site/index.html", "content": "x" }),
        )
        .await;
    for path in [
        "/mnt/user-data/workspace/a",
        "/mnt/user-data/outputs/none",
        "/mnt/user-data/outputs/../workspace/a",
        "/mnt/user-data/outputs/site",
        "/mnt/user-data/outputs",
        "/etc/passwd",
    ] {
        let error = fixture
            .call("present_files", json!({ "filepaths": [path] }))
            .await
            .unwrap_err();
        assert!(error.starts_with("Error:"), "{path}: {error}");
    }
    assert!(
        fixture
            .call("present_files", json!({ "filepaths": [] }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn mounted_folders_follow_their_permissions() {
    let host = tempfile::tempdir().unwrap();
    for name in ["data", "shared"] {
        std::fs::create_dir(host.path().join(name)).unwrap();
        std::fs::write(host.path().join(name).join("a.txt"), name).unwrap();
    }
    std::os::unix::fs::symlink("/etc", host.path().join("shared/out")).unwrap();
    let mount = |name: &str, read_only| Mount {
        host: host.path().join(name),
        inside: format!("/mnt/{name}"),
        read_only,
    };
    let fixture = fixture_with(Mounts::new([mount("data", true), mount("shared", false)]));
    assert_eq!(
        fixture
            .text("read_file", json!({ "path": "/mnt/data/a.txt" }))
            .await,
        "data"
    );
    assert_eq!(
        fixture.text("ls", json!({ "path": "/mnt/data" })).await,
        "/mnt/data/a.txt"
    );
    let found = fixture
        .text(
            "grep",
            json!({ "pattern": "shared", "path": "/mnt/shared" }),
        )
        .await;
    assert_eq!(
        found,
        "Found 1 matches under /mnt/shared\n/mnt/shared/a.txt:1: shared"
    );
    assert_eq!(
        fixture
            .text(
                "write_file",
                json!({ "path": "/mnt/shared/new/b.txt", "content": "b" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        std::fs::read_to_string(host.path().join("shared/new/b.txt")).unwrap(),
        "b"
    );
    for (tool, path, why) in [
        ("write_file", "/mnt/data/b.txt", "read-only"),
        (
            "write_file",
            "/mnt/database/b.txt",
            "outside the allowed directories",
        ),
        ("write_file", "/mnt/data/../shared/b.txt", "\"..\""),
        ("read_file", "/mnt/shared/out/passwd", "symbolic link"),
        (
            "read_file",
            "/etc/passwd",
            "outside the allowed directories",
        ),
    ] {
        let error = fixture
            .call(tool, json!({ "path": path, "content": "x" }))
            .await
            .unwrap_err();
        assert!(error.contains(why), "{tool} {path}: {error}");
    }
}

#[test]
fn interrupted_call_is_repeated_if_idempotent() {
    let fixture = fixture();
    let effect = |tool: &str, args: Value| {
        fixture
            .tools
            .get(tool)
            .unwrap()
            .effect(args.as_object().unwrap())
    };
    let at = |more: Value| {
        let mut args = json!({ "path": "/mnt/user-data/workspace/a" });
        args.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        args
    };
    assert_eq!(
        (
            effect("glob", at(json!({ "pattern": "*" }))),
            effect("grep", at(json!({ "pattern": "x" })))
        ),
        (Effect::Pure, Effect::Pure)
    );
    assert_eq!(
        (
            effect("ls", at(json!({}))),
            effect("read_file", at(json!({})))
        ),
        (Effect::Pure, Effect::Pure)
    );
    assert_eq!(
        effect("write_file", at(json!({ "content": "x" }))),
        Effect::Keyed
    );
    assert_eq!(
        effect("write_file", at(json!({ "content": "x", "append": true }))),
        Effect::Unsafe
    );
    assert_eq!(
        effect("write_file", at(json!({ "content": 5, "append": true }))),
        Effect::Pure,
        "a call with invalid arguments has no effect"
    );
    assert_eq!(
        effect(
            "str_replace",
            at(json!({ "old_str": "x", "new_str": "xx" }))
        ),
        Effect::Unsafe
    );
    assert_eq!(
        effect("present_files", json!({ "filepaths": [] })),
        Effect::Pure
    );
}
