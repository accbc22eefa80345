//! Branches of a thread whose gateway dies: complete, or absent.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::rig::{Rig, body, body_with, list, text, until};

const REPORT: &str = "/mnt/user-data/outputs/report.md";

/// Returns the message ids of a thread's transcript.
async fn message_ids(rig: &Rig, thread: &str) -> Vec<Value> {
    let page = rig
        .get(&format!("/api/threads/{thread}/messages/page"))
        .await;
    let rows = list(&page.ok()["data"]).to_vec();
    rows.iter()
        .map(|row| row["content"]["id"].clone())
        .collect()
}

/// Returns the ids of all branches.
async fn branches(rig: &Rig) -> Vec<String> {
    let filter = json!({ "metadata": { "deerflow_branch": true } });
    let found = rig.post("/api/threads/search", &filter).await.ok();
    let ids = list(&found)
        .iter()
        .map(|thread| text(&thread["thread_id"]).to_owned());
    ids.collect()
}

/// Number of threads that have files.
fn folders(rig: &Rig) -> usize {
    let threads = rig.gateway.home().join(".deer-flow/users/default/threads");
    fs::read_dir(threads).map_or(0, |found| {
        let visible = found
            .filter_map(Result::ok)
            .filter(|entry| entry.path().join("user-data").is_dir());
        visible.count()
    })
}

/// Kills the gateway at the first pass of a point while it branches a thread with a file, and
/// returns the thread and the rig after a restart.
async fn killed_at(point: &str) -> (String, Rig) {
    let mut rig = Rig::start().await;
    let write = |path: &str| {
        let call = json!({ "description": "write", "path": path, "content": "# R" });
        format!("[[tool:write_file {call}]]")
    };
    let other = "/mnt/user-data/workspace/notes.md";
    let prompt = format!("{}{} then say Done.", write(REPORT), write(other));
    let thread = rig.run_prompt(&prompt).await.thread;
    let answer = message_ids(&rig, &thread).await.pop().expect("an answer");
    let dies_at = format!("{point}:1");
    rig.gateway.set_env("DEERFLOW_DIES_AT", Some(&dies_at));
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("started");
    let path = format!("/api/threads/{thread}/branches");
    let request = rig.request(reqwest::Method::POST, &path);
    let sent = request.json(&json!({ "message_id": answer })).send().await;
    assert!(sent.is_err(), "{point} was not passed: {sent:?}");
    rig.gateway.kill9().await.expect("ended");
    rig.gateway.set_env("DEERFLOW_DIES_AT", None);
    rig.gateway.restart().await.expect("started");
    (thread, rig)
}

#[tokio::test]
async fn branch_is_absent_after_death_before_its_rows() {
    let (thread, rig) = killed_at("branch.files_copied").await;
    assert_eq!(branches(&rig).await, [""; 0]);
    let answer = message_ids(&rig, &thread).await.pop().expect("an answer");
    let path = format!("/api/threads/{thread}/branches");
    let created = rig.post(&path, &json!({ "message_id": answer })).await.ok();
    assert_eq!(branches(&rig).await, [text(&created["thread_id"])]);
}

#[tokio::test]
async fn half_copied_branch_is_absent_and_its_files_are_swept() {
    let (thread, mut rig) = killed_at("branch.file_copied").await;
    assert_eq!(branches(&rig).await, [""; 0]);
    let found = rig.post("/api/threads/search", &json!({})).await.ok();
    assert_eq!(list(&found).len(), 1, "{found}");
    assert_eq!(folders(&rig), 2);
    // The sweep ignores young copies, because another process may be writing them.
    let hours_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let threads = rig.gateway.home().join(".deer-flow/users/default/threads");
    let entries = fs::read_dir(threads).expect("a folder");
    let names = entries.flatten().map(|entry| entry.path());
    let mut markers = names.filter(|path| path.to_string_lossy().contains("/.copying-"));
    let marker = markers.next().expect("the marker of the copy");
    let marker = fs::File::options().write(true).open(marker);
    let dated = marker.and_then(|marker| marker.set_modified(hours_ago));
    dated.expect("an old marker");
    rig.gateway.kill9().await.expect("killed");
    rig.gateway.restart().await.expect("started");
    until("the sweep", async || (folders(&rig) == 1).then_some(())).await;
    let path = format!("/api/threads/{thread}/artifacts{REPORT}");
    assert_eq!(rig.get(&path).await.text, "# R");
}

#[tokio::test]
async fn branch_is_complete_after_death_behind_its_rows() {
    let (thread, rig) = killed_at("branch.stored").await;
    let found = branches(&rig).await;
    let [branch] = found.as_slice() else {
        panic!("one branch, not {found:?}");
    };
    assert_eq!(
        message_ids(&rig, branch).await,
        message_ids(&rig, &thread).await
    );
    let file = rig
        .get(&format!("/api/threads/{branch}/artifacts{REPORT}"))
        .await;
    assert_eq!((file.status.as_u16(), file.text.as_str()), (200, "# R"));
    let run = rig.run(branch, &body("then say on")).await;
    assert_eq!(rig.get_run(branch, &run.run).await["status"], "success");
    assert_eq!(folders(&rig), 2);
}

#[tokio::test]
async fn thread_of_custom_agent_is_branched_with_its_agent() {
    let rig = Rig::with("agents_api: {enabled: true}\n").await;
    let agent = json!({ "name": "gardener", "description": "d", "soul": "You are a gardener." });
    let created = rig.post("/api/agents", &agent).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let thread = rig.thread().await;
    let path = format!("/api/threads/{thread}");
    let named = json!({ "metadata": { "agent_name": "gardener", "deerflow_pinned": true } });
    rig.patch(&path, &named).await.ok();
    let run = |say: &str| body_with(say, json!({ "context": { "agent_name": "gardener" } }));
    rig.run(&thread, &run("then say a")).await;
    let answer = message_ids(&rig, &thread).await.pop().expect("an answer");
    let request = json!({ "message_id": answer });
    let created = rig.post(&format!("{path}/branches"), &request).await.ok();
    let branch = text(&created["thread_id"]);
    let metadata = rig.get(&format!("/api/threads/{branch}")).await.ok()["metadata"].clone();
    assert_eq!(metadata["agent_name"], "gardener");
    assert_eq!(metadata["deerflow_pinned"], Value::Null);
    let next = rig.run(branch, &run("then say b")).await;
    assert_eq!(rig.get_run(branch, &next.run).await["status"], "success");
    assert_eq!(message_ids(&rig, branch).await.len(), 4);
}
