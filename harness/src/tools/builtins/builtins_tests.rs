//! The file tools on a real directory.

use serde_json::{Value, json};

use super::*;
use crate::sandbox::{FileLimits, Mount, Mounts};
use crate::testkit::tool_context;
use crate::tools::{Effect, ToolRegistry, erase};

struct Bench {
    _dir: tempfile::TempDir,
    tools: ToolRegistry,
    ctx: ToolContext,
}

fn bench() -> Bench {
    bench_with(Mounts::default())
}

fn bench_with(mounts: Mounts) -> Bench {
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
    tools.add(erase(Glob { home: home.clone() }));
    tools.add(erase(Grep { home: home.clone() }));
    tools.add(erase(ListUploadedFiles { home: home.clone() }));
    tools.add(erase(PresentFiles { home }));
    Bench {
        _dir: dir,
        tools,
        ctx: tool_context(),
    }
}

impl Bench {
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
async fn a_file_is_written_listed_read_changed_and_presented() {
    let bench = bench();
    let path = "/mnt/user-data/outputs/notes/a.md";
    assert_eq!(
        bench
            .text(
                "write_file",
                json!({ "description": "try", "path": path, "content": "one\ntwo\n" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        bench
            .text(
                "write_file",
                json!({ "path": path, "content": "three\n", "append": true })
            )
            .await,
        "OK"
    );
    assert_eq!(
        bench
            .text(
                "str_replace",
                json!({ "path": path, "old_str": "two", "new_str": "2" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        bench
            .text(
                "read_file",
                json!({ "path": path, "start_line": 2, "end_line": 3 })
            )
            .await,
        "2\nthree"
    );
    let listed = bench
        .text("ls", json!({ "path": "/mnt/user-data/outputs" }))
        .await;
    assert_eq!(
        listed,
        "/mnt/user-data/outputs/notes/\n/mnt/user-data/outputs/notes/a.md"
    );
    let presented = bench
        .call("present_files", json!({ "filepaths": [path] }))
        .await
        .unwrap();
    assert_eq!(presented.update.channels["artifacts"], json!([path]));
}

#[tokio::test]
async fn files_are_found_by_name_and_by_what_they_say() {
    let bench = bench();
    let root = "/mnt/user-data/workspace";
    for (name, content) in [("a.md", "one\ntwo\n"), ("b/c.md", "two\n")] {
        bench
            .text(
                "write_file",
                json!({ "path": format!("{root}/{name}"), "content": content }),
            )
            .await;
    }
    let found = bench
        .text(
            "glob",
            json!({ "description": "d", "pattern": "**/*.md", "path": root }),
        )
        .await;
    assert_eq!(
        found,
        format!("Found 2 paths under {root}\n1. {root}/a.md\n2. {root}/b/c.md")
    );
    let found = bench
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
        bench
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
            bench
                .call(tool, args.clone())
                .await
                .unwrap_err()
                .starts_with("Error:"),
            "{args}"
        );
    }
}

#[tokio::test]
async fn uploads_of_earlier_turns_are_listed_with_their_headings() {
    let mut bench = bench();
    assert!(
        bench
            .text("list_uploaded_files", json!({}))
            .await
            .starts_with("No files")
    );
    let made = format!(
        "{}\n\n# Aim\n\ntext\n",
        crate::documents::mark_of("plan.pdf")
    );
    for (name, content) in [
        ("plan.pdf", "%PDF"),
        ("plan.md", &*made),
        ("notes.md", "one\ntwo\n"),
        ("new.txt", "now"),
    ] {
        bench
            .text(
                "write_file",
                json!({ "path": format!("/mnt/user-data/uploads/{name}"), "content": content }),
            )
            .await;
    }
    let channels = [(
        "uploaded_files".to_owned(),
        json!([{ "filename": "new.txt" }]),
    )]
    .into_iter()
    .collect();
    bench.ctx.state = std::sync::Arc::new(crate::state::ThreadState::restored([], channels));
    let listed = bench
        .text(
            "list_uploaded_files",
            json!({ "include_outline": ["plan.pdf"] }),
        )
        .await;
    assert!(listed.starts_with("Found 2 files\n- "), "{listed}");
    assert!(
        !listed.contains("new.txt") && !listed.contains("- plan.md") && !listed.contains("> one"),
        "{listed}"
    );
    let plan = "- plan.pdf (0.0 KB)\n  Path: /mnt/user-data/uploads/plan.pdf\n  Markdown: /mnt/user-data/uploads/plan.md\n  L3: Aim";
    assert!(listed.contains(plan), "{listed}");
    let all = bench
        .text(
            "list_uploaded_files",
            json!({ "include_outline": true, "max_results": 1 }),
        )
        .await;
    assert!(
        all.starts_with("Found 2 files (showing the newest 1)"),
        "{all}"
    );
    let refused = format!(
        "{:?}",
        bench
            .call("list_uploaded_files", json!({ "include_outline": 5 }))
            .await
            .unwrap_err()
    );
    assert!(
        refused.contains("expected true, false or a list of file names")
            && !refused.contains("untagged"),
        "{refused}"
    );

    // Of two files of one name, each by itself: the text was not made of the document.
    for (name, content) in [("slides.pptx", "PK"), ("slides.md", "# My own\n")] {
        bench
            .text(
                "write_file",
                json!({ "path": format!("/mnt/user-data/uploads/{name}"), "content": content }),
            )
            .await;
    }
    let own = bench
        .text("list_uploaded_files", json!({ "include_outline": true }))
        .await;
    assert!(
        own.contains("- slides.md (0.0 KB)")
            && own.contains("L1: My own")
            && !own.contains("Markdown: /mnt/user-data/uploads/slides.md"),
        "{own}"
    );
}

#[tokio::test]
async fn only_existing_files_in_outputs_are_presented() {
    let bench = bench();
    bench
        .text(
            "write_file",
            json!({ "path": "/mnt/user-data/workspace/a", "content": "x" }),
        )
        .await;
    bench
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
        let error = bench
            .call("present_files", json!({ "filepaths": [path] }))
            .await
            .unwrap_err();
        assert!(error.starts_with("Error:"), "{path}: {error}");
    }
    assert!(
        bench
            .call("present_files", json!({ "filepaths": [] }))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn wrong_arguments_name_the_field_and_the_tool() {
    let error = bench()
        .call("read_file", json!({ "path": 7 }))
        .await
        .unwrap_err();
    assert!(error.contains("read_file at path"), "{error}");
    let error = bench()
        .call(
            "write_file",
            json!({ "path": "/mnt/user-data/workspace/a" }),
        )
        .await
        .unwrap_err();
    assert!(error.contains("content"), "{error}");
}

#[tokio::test]
async fn a_text_that_is_not_there_is_not_replaced_and_an_empty_one_changes_nothing() {
    let bench = bench();
    let path = "/mnt/user-data/workspace/a";
    bench
        .text("write_file", json!({ "path": path, "content": "abc" }))
        .await;
    assert!(
        bench
            .call(
                "str_replace",
                json!({ "path": path, "old_str": "z", "new_str": "y" })
            )
            .await
            .unwrap_err()
            .starts_with("Error:")
    );
    assert_eq!(
        bench
            .text(
                "str_replace",
                json!({ "path": path, "old_str": "", "new_str": "y" })
            )
            .await,
        "OK"
    );
    assert_eq!(
        bench.text("read_file", json!({ "path": path })).await,
        "abc"
    );
}

#[tokio::test]
async fn an_empty_text_is_replaced_in_no_missing_file() {
    let bench = bench();
    for (path, why) in [
        ("/mnt/user-data/workspace/missing", "missing"),
        ("/mnt/user-data/workspace", "workspace"),
    ] {
        for new in ["y", ""] {
            let error = bench
                .call(
                    "str_replace",
                    json!({ "path": path, "old_str": "", "new_str": new }),
                )
                .await
                .unwrap_err();
            assert!(
                error.starts_with("Error:") && error.contains(why),
                "{path}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn mounted_folders_are_read_and_written_where_that_is_allowed() {
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
    let bench = bench_with(Mounts::new([mount("data", true), mount("shared", false)]));
    assert_eq!(
        bench
            .text("read_file", json!({ "path": "/mnt/data/a.txt" }))
            .await,
        "data"
    );
    assert_eq!(
        bench.text("ls", json!({ "path": "/mnt/data" })).await,
        "/mnt/data/a.txt"
    );
    let found = bench
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
        bench
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
        let error = bench
            .call(tool, json!({ "path": path, "content": "x" }))
            .await
            .unwrap_err();
        assert!(error.contains(why), "{tool} {path}: {error}");
    }
}

#[tokio::test]
async fn a_pattern_that_would_take_minutes_to_read_is_refused_at_once() {
    let pattern = format!("(?i){}", r"[\p{L}\p{N}]?".repeat(10_000));
    let error = bench()
        .call(
            "grep",
            json!({ "pattern": pattern, "path": "/mnt/user-data/workspace" }),
        )
        .await
        .unwrap_err();
    assert!(error.contains("longer than 1024 bytes"), "{error}");
}

#[test]
fn the_model_sees_every_parameter_with_its_description() {
    let bench = bench();
    for schema in bench.tools.schemas().iter() {
        let fields = schema.parameters["properties"].as_object().unwrap();
        assert!(
            !fields.is_empty()
                && fields
                    .values()
                    .all(|field| field["description"].is_string()),
            "{}",
            schema.name
        );
        assert!(!schema.description.is_empty());
    }
    let write = bench.tools.get("write_file").unwrap().schema();
    assert_eq!(write.parameters["required"], json!(["path", "content"]));
}

#[test]
fn a_call_that_was_cut_off_is_repeated_where_that_changes_nothing() {
    let bench = bench();
    let effect = |tool: &str, args: Value| {
        bench
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
        "such a call does nothing"
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
