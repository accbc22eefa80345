//! Quotas of users over HTTP: runs that wait for others of their user, and data beyond a quota.

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};

use crate::rig::{Rig, body, config, text, until};

const QUOTAS: &str =
    "quotas: {active_runs: 2, queued_runs: 1, threads: 5, items: 1, files_mb: 1}\n";

async fn status(rig: &Rig, thread: &str, run: &str) -> (String, Value) {
    let run = rig.get_run(thread, run).await;
    (text(&run["status"]).to_owned(), run["queue_reason"].clone())
}

#[tokio::test]
async fn runs_beyond_the_limit_wait_and_state_why() {
    let rig = Rig::with(QUOTAS).await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        let thread = rig.thread().await;
        let run = rig.background(&thread, &body("[[hang]]")).await;
        runs.push((thread, run));
    }
    let active = async |n: usize| {
        let (thread, run): &(String, String) = &runs[n];
        let (status, reason) = status(&rig, thread, run).await;
        (status == "running").then_some(reason)
    };
    for n in [0, 1] {
        let reason = until("an active run", async || active(n).await).await;
        assert_eq!(reason, Value::Null);
    }
    let (thread, queued) = &runs[2];
    let waiting = ("pending".to_owned(), json!("user_limit"));
    assert_eq!(status(&rig, thread, queued).await, waiting);
    let listed = rig.get(&format!("/api/threads/{thread}/runs")).await.ok();
    assert_eq!(listed[0]["queue_reason"], "user_limit");

    let another = rig.thread().await;
    let path = format!("/api/threads/{another}/runs");
    let refused = rig.post(&path, &body("hi")).await;
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    let refused = refused.json();
    assert_eq!(refused["quota"], "queued_runs");
    assert_eq!([&refused["used"], &refused["limit"]], [1, 1]);

    let (first_thread, first) = &runs[0];
    let cancel = format!("/api/threads/{first_thread}/runs/{first}/cancel");
    rig.post(&cancel, &json!({})).await;
    until("start of the queued run", async || active(2).await).await;
    let metrics = rig.get("/metrics").await.text;
    let queued = metrics
        .lines()
        .find(|line| line.starts_with("deerflow_runs_queued{"));
    assert!(queued.is_some(), "{metrics}");
}

/// Uploads a file of this size, and returns the status and the body of the answer.
async fn upload(rig: &Rig, thread: &str, bytes: usize) -> (u16, String) {
    let part = Part::bytes(vec![b'x'; bytes]).file_name("a.txt");
    let path = format!("/api/threads/{thread}/uploads");
    let request = rig.request(Method::POST, &path);
    let sent = request.multipart(Form::new().part("files", part)).send();
    let response = sent.await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.text().await.expect("a text"))
}

#[tokio::test]
async fn branch_with_files_beyond_the_quota_is_rejected() {
    let rig = Rig::with(QUOTAS).await;
    let thread = rig.run_prompt("say Done.").await.thread;
    assert_eq!(upload(&rig, &thread, 700 << 10).await.0, 200);
    let messages = format!("/api/threads/{thread}/messages/page");
    let page = rig.get(&messages).await.ok();
    let answer = &page["data"][1]["content"]["id"];
    let path = format!("/api/threads/{thread}/branches");
    let refused = rig.post(&path, &json!({ "message_id": answer })).await;
    assert_eq!(refused.status.as_u16(), 413, "{}", refused.text);
    assert_eq!(refused.json()["quota"], "file_bytes");
    assert_eq!(refused.json()["used"], 700 << 10);
    // A smaller file fits twice.
    let file = format!("/api/threads/{thread}/uploads/a.txt");
    rig.delete(&file).await.ok();
    assert_eq!(upload(&rig, &thread, 100 << 10).await.0, 200);
    let branch = until("space for the branch", async || {
        let branch = rig.post(&path, &json!({ "message_id": answer })).await;
        branch.status.is_success().then(|| branch.json())
    });
    assert_eq!(
        branch.await["workspace_clone_mode"],
        "current_thread_best_effort"
    );
}

#[tokio::test]
async fn data_beyond_quotas_is_rejected_and_listed() {
    let rig = Rig::with(QUOTAS).await;
    let mut threads = Vec::new();
    for _ in 0..5 {
        threads.push(rig.thread().await);
    }
    let refused = rig.post("/api/threads", &json!({})).await;
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    assert_eq!(refused.json()["quota"], "threads");
    let stateless = rig.post("/runs/wait", &body("hi")).await;
    assert_eq!(stateless.status.as_u16(), 429, "{}", stateless.text);
    rig.delete(&format!("/api/threads/{}", threads[0]))
        .await
        .ok();
    threads[0] = rig.thread().await;

    let item = |key| json!({"namespace": ["n"], "key": key, "value": {"a": 1}});
    rig.put("/store/items", &item("a")).await;
    let refused = rig.put("/store/items", &item("b")).await;
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    assert_eq!(refused.json()["quota"], "items");

    assert_eq!(upload(&rig, &threads[0], 700 << 10).await.0, 200);
    let (status, refused) = upload(&rig, &threads[0], 700 << 10).await;
    assert_eq!(status, 413, "{refused}");
    let refused: Value = serde_json::from_str(&refused).unwrap();
    assert_eq!(refused["quota"], "file_bytes");
    assert_eq!(refused["limit"], 1 << 20);

    let mut command = rig.gateway.program(&["users", "usage", "--json"]);
    let output = command.output().await.unwrap();
    let usage: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(usage[0]["usage"]["threads"], json!({"used": 5, "limit": 5}));
    assert_eq!(usage[0]["usage"]["items"]["used"], 1);
    let files = usage[0]["usage"]["file_bytes"]["used"].as_u64().unwrap();
    assert!(files >= 700 << 10, "{usage}");
}

#[tokio::test]
async fn run_that_waits_for_a_model_call_states_it() {
    let limited = |base_url: &str| {
        let model = "    model: scripted-1\n";
        let with_limit = format!("{model}    max_concurrent_calls: 1\n");
        config(base_url, "").replace(model, &with_limit)
    };
    let rig = Rig::configured(limited, &[]).await;
    for reason in [Value::Null, json!("model_calls")] {
        let thread = rig.thread().await;
        let run = rig.background(&thread, &body("[[hang]]")).await;
        until("reason of the run", async || {
            let current = status(&rig, &thread, &run).await;
            (current == ("running".to_owned(), reason.clone())).then_some(())
        })
        .await;
        // The second run may only wait for the call of the first.
        until("call of the model", async || {
            (!rig.model.requests().is_empty()).then_some(())
        })
        .await;
    }
    let metrics = rig.get("/metrics").await.text;
    let waits = "deerflow_permit_waits{work=\"model_calls\"} 1";
    assert!(metrics.contains(waits), "{metrics}");
}
