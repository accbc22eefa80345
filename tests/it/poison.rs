//! A run that kills each process that executes it is quarantined, and an operator retries it.

use serde_json::Value;

use crate::rig::{Rig, body, messages_of, text, until};

/// Runs the program with these arguments and returns its output.
async fn deerflow(rig: &Rig, arguments: &[&str]) -> String {
    let output = rig.gateway.program(arguments).output().await;
    let output = output.expect("the program ran");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

async fn poisoned(rig: &Rig) -> Vec<Value> {
    let listed = deerflow(rig, &["runs", "--state", "poisoned", "--json"]).await;
    serde_json::from_str(&listed).expect("a JSON list")
}

/// Starts a run and kills its process in each of three attempts. Returns thread and run.
async fn poison(rig: &mut Rig, prompt: &str) -> (String, String) {
    let thread = rig.thread().await;
    let run = rig.background(&thread, &body(prompt)).await;
    for _ in 0..3 {
        let mut viewer = rig.join(&thread, &run, None).await;
        let token = viewer.next_named("messages").await;
        token.expect("frame").expect("open");
        rig.gateway.kill9().await.expect("killed");
        rig.gateway.restart().await.expect("healthy again");
    }
    (thread, run)
}

async fn retried(rig: &Rig, thread: &str, run: &str) -> String {
    until("the retried run", async || {
        let runs = rig.get(&format!("/api/threads/{thread}/runs")).await.ok();
        let runs = runs.as_array().expect("a list").clone();
        let new = runs
            .iter()
            .find(|new| new["metadata"]["retried_from"] == *run)?;
        Some(text(&new["run_id"]).to_owned())
    })
    .await
}

#[tokio::test]
async fn poisoned_run_is_quarantined_and_completes_after_retry() {
    let mut rig = Rig::start().await;
    let prompt = "[[slow 100x1ms]][[hold 5]]";
    let (thread, run) = poison(&mut rig, prompt).await;
    assert_eq!(rig.wait_for_end(&thread, &run).await, "error");
    let other = rig.run_prompt("then say x").await;
    assert_eq!(
        rig.get_run(&other.thread, &other.run).await["status"],
        "success"
    );
    let listed = poisoned(&rig).await;
    assert_eq!(
        (listed.len(), &listed[0]["run_id"], &listed[0]["losses"]),
        (1, &Value::from(run.as_str()), &Value::from(3))
    );
    rig.model.release();
    let printed = deerflow(&rig, &["runs", "retry", &run]).await;
    assert!(
        printed.contains(&format!("as a retry of run {run}")),
        "{printed}"
    );
    let new = retried(&rig, &thread, &run).await;
    assert_eq!(rig.wait_for_end(&thread, &new).await, "success");
    let answer: String = (0..100).map(|piece| format!("tok{piece} ")).collect();
    assert_eq!(
        rig.visible_messages(&thread).await,
        messages_of(&[("human", prompt), ("ai", &answer)])
    );
    assert_eq!(rig.get_run(&thread, &run).await["status"], "error");
    assert_eq!(rig.model.rejections(), 0);
}

#[tokio::test]
async fn retry_without_server_starts_with_next_server() {
    let mut rig = Rig::start().await;
    let (thread, run) = poison(&mut rig, "[[slow 100x1ms]][[hold 5]]").await;
    rig.gateway.kill9().await.expect("killed");
    let text = deerflow(&rig, &["runs", "retry", &run]).await;
    assert!(text.contains("no server is running"), "{text}");
    rig.model.release();
    rig.gateway.restart().await.expect("healthy again");
    let new = retried(&rig, &thread, &run).await;
    assert_eq!(rig.wait_for_end(&thread, &new).await, "success");
}
