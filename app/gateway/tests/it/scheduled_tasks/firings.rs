//! Firings of scheduled tasks, and the runs that they create.

use std::time::Duration;

use chrono::TimeDelta;
use deerflow_domain::testkit::accounts::set_disabled;
use harness::clock::{Clock, SystemClock};
use harness::ids::{RunId, ThreadId};
use serde_json::{Value, json};

use super::{ALL, created, in_two_days, is_id, nightly, poll, runs};
use crate::support::{Gateway, saying};

/// Waits until the newest run of a task has ended, and returns it.
async fn ended_run(gateway: &Gateway, path: &str) -> Value {
    let run = runs(gateway, path).await.remove(0);
    let id = RunId::parse(run["run_id"].as_str().expect("a run")).expect("an id");
    let ended = async {
        let is_over = async || {
            let record = gateway.runs.get_run(None, &id).await.expect("read");
            record.is_some_and(|record| record.status.is_terminal())
        };
        while !is_over().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended)
        .await
        .expect("the run ends");
    runs(gateway, path).await.remove(0)
}

#[tokio::test]
async fn task_fires_on_a_fresh_thread_each_time() {
    let gateway = Gateway::new();
    let path = created(&gateway, nightly(json!({}))).await;
    let triggered = gateway.post(&format!("{path}/trigger"), json!({})).await;
    let id = path.rsplit('/').next();
    assert_eq!(triggered.json(), json!({ "id": id, "triggered": true }));
    let manual = ended_run(&gateway, &path).await;
    assert!(is_id(&manual["id"], "task-run-"), "{manual}");
    assert_eq!(
        (&manual["status"], &manual["trigger"], &manual["error"]),
        (&json!("success"), &json!("manual"), &Value::Null)
    );
    let thread = ThreadId::parse(manual["thread_id"].as_str().expect("a thread"));
    let checkpoints = &gateway.state.thread_services.checkpoints;
    let checkpoint = checkpoints.get(&thread.expect("an id"), None).await;
    assert!(checkpoint.expect("read").is_some());
    poll(&gateway, in_two_days()).await;
    let run = ended_run(&gateway, &path).await;
    assert_eq!(
        (&run["status"], &run["trigger"]),
        (&json!("success"), &json!("scheduled"))
    );
    assert_ne!(manual["thread_id"], run["thread_id"]);
    let task = gateway.get(&path).await.json();
    assert_eq!(
        (
            &task["run_count"],
            &task["last_run_id"],
            &task["last_thread_id"]
        ),
        (&json!(2), &run["run_id"], &run["thread_id"])
    );
    let page = gateway.get(&format!("{path}/runs?limit=1&offset=1")).await;
    assert_eq!(page.json(), json!([manual]));
    for query in ["limit=0", "limit=201", "offset=-1"] {
        let response = gateway.get(&format!("{path}/runs?{query}")).await;
        assert_eq!(response.code(), 422, "{query}");
    }
}

#[tokio::test]
async fn single_task_runs_on_its_thread_and_completes() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let at = SystemClock.now() + TimeDelta::hours(1);
    let body = json!({
        "schedule_type": "once", "schedule_spec": { "run_at": at.to_rfc3339() },
        "context_mode": "reuse_thread", "thread_id": thread,
    });
    let path = created(&gateway, nightly(body)).await;
    let of_thread = format!("/api/threads/{thread}/scheduled-tasks");
    let listed = gateway.get(&of_thread).await.json();
    assert_eq!(listed, json!([gateway.get(&path).await.json()]));
    poll(&gateway, in_two_days()).await;
    let run = ended_run(&gateway, &path).await;
    assert_eq!(run["thread_id"], json!(thread));
    let task = gateway.get(&path).await.json();
    assert_eq!(
        (&task["status"], &task["next_run_at"]),
        (&json!("completed"), &Value::Null)
    );
    let paused = gateway.post(&format!("{path}/pause"), json!({})).await;
    assert_eq!(paused.code(), 409);
    let later = (at + TimeDelta::days(9)).to_rfc3339();
    let patch = json!({ "schedule_spec": { "run_at": later } });
    let again = gateway.send("PATCH", &path, Some(patch)).await.json();
    assert_eq!(again["status"], "enabled");
    gateway
        .send("DELETE", &format!("/api/threads/{thread}"), None)
        .await;
    assert_eq!(gateway.get(&of_thread).await.code(), 404);
}

#[tokio::test]
async fn active_run_skips_a_firing_and_refuses_a_trigger() {
    let gateway = Gateway::new();
    let on_thread = json!({
        "prompt": "slow", "context_mode": "reuse_thread", "thread_id": gateway.thread().await,
    });
    let path = created(&gateway, nightly(on_thread)).await;
    let trigger = format!("{path}/trigger");
    assert_eq!(gateway.post(&trigger, json!({})).await.code(), 200);
    assert_eq!(gateway.get(&path).await.json()["status"], "running");
    assert_eq!(gateway.get(ALL).await.json()[0]["status"], "running");
    assert_eq!(gateway.post(&trigger, json!({})).await.code(), 409);
    poll(&gateway, in_two_days()).await;
    let rows = runs(&gateway, &path).await;
    assert_eq!(
        (&rows[0]["status"], &rows[0]["run_id"], &rows[1]["status"]),
        (&json!("skipped"), &Value::Null, &json!("running"))
    );
    let (thread, run) = (rows[1]["thread_id"].as_str(), rows[1]["run_id"].as_str());
    let (thread, run) = (thread.expect("a thread"), run.expect("a run"));
    let cancel = format!("/api/threads/{thread}/runs/{run}/cancel");
    gateway.post(&cancel, json!({})).await;
    gateway.wait_for_status(thread, run).await;
    assert_eq!(runs(&gateway, &path).await[1]["status"], "interrupted");
    assert_eq!(gateway.get(&path).await.json()["status"], "enabled");
}

#[tokio::test]
async fn busy_thread_skips_a_firing_and_refuses_a_trigger() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let busy = format!("/api/threads/{thread}/runs");
    gateway.post(&busy, saying("slow")).await;
    let body = json!({ "context_mode": "reuse_thread", "thread_id": thread });
    let path = created(&gateway, nightly(body)).await;
    let triggered = gateway.post(&format!("{path}/trigger"), json!({})).await;
    assert_eq!(triggered.code(), 409, "{}", triggered.text());
    poll(&gateway, in_two_days()).await;
    let rows = runs(&gateway, &path).await;
    assert_eq!(
        rows.iter().map(|row| &row["status"]).collect::<Vec<_>>(),
        ["skipped", "skipped"]
    );
    let all = gateway.get(&busy).await.json();
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    assert_eq!(gateway.get(&path).await.json()["run_count"], 0);
}

#[tokio::test]
async fn failed_run_is_reported_at_its_task() {
    let gateway = Gateway::new();
    let path = created(&gateway, nightly(json!({ "prompt": "fail badly" }))).await;
    gateway.post(&format!("{path}/trigger"), json!({})).await;
    let run = ended_run(&gateway, &path).await;
    assert_eq!(run["status"], "failed");
    let error = run["error"].as_str().expect("a text");
    assert!(error.contains("badly"), "{error}");
    assert_eq!(gateway.get(&path).await.json()["last_error"], run["error"]);
}

#[tokio::test]
async fn task_of_disabled_account_starts_no_run() {
    let gateway = Gateway::new();
    let path = created(&gateway, nightly(json!({}))).await;
    let accounts = &gateway.state.security.sign_in.stores.accounts;
    set_disabled(&**accounts, "default", true).await;
    // The store in memory does not know accounts, as if the account was disabled after the read.
    poll(&gateway, in_two_days()).await;
    let id = path.rsplit('/').next().expect("an id");
    let runs = gateway.state.schedules.tasks.runs(id, 9, 0).await;
    let runs = runs.expect("read");
    assert_eq!(runs.len(), 1);
    let error = runs[0].error.as_deref().unwrap_or_default();
    assert!(error.contains("disabled"), "{error}");
    let run = gateway.runs.get_run(None, &runs[0].run_id).await;
    assert_eq!(run.expect("read"), None);
}
