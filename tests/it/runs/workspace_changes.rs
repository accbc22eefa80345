//! Files that a run created, changed and deleted, by file tools and by commands.

use serde_json::{Value, json};

use crate::rig::{FinishedRun, Rig, body, list, text, until};

const OUTPUTS: &str = "/mnt/user-data/outputs";

async fn changes(rig: &Rig, run: &FinishedRun) -> Value {
    let path = format!(
        "/api/threads/{}/runs/{}/workspace-changes",
        run.thread, run.run
    );
    rig.get(&path).await.ok()
}

/// Returns path, status and diff of each file.
fn files(changes: &Value) -> Vec<[&str; 3]> {
    let files = list(&changes["files"]).iter();
    files
        .map(|file| ["path", "status", "diff"].map(|field| text(&file[field])))
        .collect()
}

fn tool(name: &str, args: &Value) -> String {
    format!("[[tool:{name} {args}]]")
}

fn write(file: &str, content: &str) -> String {
    let path = format!("{OUTPUTS}/{file}");
    let args = json!({ "description": "d", "path": path, "content": content });
    tool("write_file", &args)
}

#[tokio::test]
async fn changes_of_file_tools_are_those_of_their_run() {
    let rig = Rig::start().await;
    let first = rig
        .run_prompt(&format!("{} then say a", write("a.md", "one\n")))
        .await;
    let of_first = changes(&rig, &first).await;
    assert_eq!(of_first["available"], true);
    assert_eq!(of_first["summary"]["created"], 1);
    let diff =
        "--- a/mnt/user-data/outputs/a.md\n+++ b/mnt/user-data/outputs/a.md\n@@ -0,0 +1 @@\n+one\n";
    let path = format!("{OUTPUTS}/a.md");
    assert_eq!(files(&of_first), [[path.as_str(), "created", diff]]);

    let append = json!({ "description": "d", "path": path, "content": "two\n", "append": true });
    let prompt = format!("{} then say b", tool("write_file", &append));
    let second = rig.run(&first.thread, &body(&prompt)).await;
    let of_second = changes(&rig, &second).await;
    let summary = json!({
        "created": 0, "modified": 1, "deleted": 0, "symlink_created": 0,
        "additions": 1, "deletions": 0, "truncated": false,
    });
    assert_eq!(of_second["summary"], summary);
    assert_eq!(
        changes(&rig, &first).await,
        of_first,
        "the changes of the first run are unchanged"
    );

    let bare = format!(
        "/api/threads/{}/runs/{}/workspace-changes?include_files=false",
        second.thread, second.run
    );
    assert_eq!(rig.get(&bare).await.ok()["files"], json!([]));
    let read = tool("read_file", &json!({ "description": "d", "path": path }));
    let third = rig
        .run(&first.thread, &body(&format!("{read} then say c")))
        .await;
    assert_eq!(changes(&rig, &third).await["available"], false);
}

#[tokio::test]
async fn changes_of_cancelled_run_are_reported() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let prompt = format!("{}[[slow 400x5ms]][[hold 5]]", write("a.md", "one\n"));
    let run = rig.background(&thread, &body(&prompt)).await;
    until("the file is written", async || {
        let file = rig
            .get(&format!("/api/threads/{thread}/artifacts{OUTPUTS}/a.md"))
            .await;
        (file.status == 200).then_some(())
    })
    .await;
    let cancel = format!("/api/threads/{thread}/runs/{run}/cancel?wait=1");
    let response = rig.post(&cancel, &json!({})).await;
    assert_eq!(response.status, 204, "{}", response.text);
    let path = format!("/api/threads/{thread}/runs/{run}/workspace-changes");
    assert_eq!(rig.get(&path).await.ok()["summary"]["created"], 1);
}

#[tokio::test]
async fn changes_of_commands_are_reported() {
    let rig = Rig::with_commands("{use: local, allow_host_bash: true}").await;
    let first = rig
        .run_prompt(&format!(
            "{}{} then say a",
            write("a.md", "one\n"),
            write("b.md", "b\n")
        ))
        .await;
    let command =
        "echo two >> ../outputs/a.md; rm ../outputs/b.md; echo c > 'c\nd'; ln -s /etc/passwd link";
    let bash = tool("bash", &json!({ "description": "d", "command": command }));
    let second = rig
        .run(&first.thread, &body(&format!("{bash} then say b")))
        .await;
    let report = changes(&rig, &second).await;
    let summary = &report["summary"];
    let counts =
        ["created", "modified", "deleted", "symlink_created"].map(|name| summary[name].clone());
    assert_eq!(counts, [1, 1, 1, 1].map(Value::from), "{report}");
    assert!(
        !report.to_string().contains("root:"),
        "the link is not followed"
    );
}
