//! Runs whose viewer disconnects.

use serde_json::json;

use crate::rig::{Rig, body_with, messages_of, text};

/// Prompt of an answer that does not end before a viewer has disconnected.
const HELD_PROMPT: &str = "[[slow 40x1ms]][[hold 5]]";

async fn start_and_disconnect(rig: &Rig, on_disconnect: serde_json::Value) -> (String, String) {
    let thread = rig.thread().await;
    let body = body_with(HELD_PROMPT, json!({"on_disconnect": on_disconnect}));
    let mut stream = rig.stream(&thread, &body).await;
    let metadata = stream
        .next_frame()
        .await
        .expect("frame")
        .expect("open")
        .json()
        .expect("json");
    stream
        .next_named("messages")
        .await
        .expect("frame")
        .expect("open");
    drop(stream);
    (thread, text(&metadata["run_id"]).to_owned())
}

#[tokio::test]
async fn run_is_cancelled_by_default_when_viewer_disconnects() {
    let rig = Rig::start().await;
    for mode in [json!("cancel"), json!(null)] {
        let (thread, run) = start_and_disconnect(&rig, mode).await;
        assert_eq!(rig.wait_for_end(&thread, &run).await, "interrupted");
    }
}

#[tokio::test]
async fn run_with_continue_survives_disconnect() {
    let rig = Rig::start().await;
    let (thread, run) = start_and_disconnect(&rig, json!("continue")).await;
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
    let answer: String = (0..40).map(|n| format!("tok{n} ")).collect();
    assert_eq!(
        rig.visible_messages(&thread).await,
        messages_of(&[("human", HELD_PROMPT), ("ai", &answer)])
    );
}

#[tokio::test]
async fn disconnect_of_joined_viewer_does_not_cancel_run() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig
        .background(
            &thread,
            &body_with(HELD_PROMPT, json!({"on_disconnect": "cancel"})),
        )
        .await;
    let mut viewer = rig.join(&thread, &run, None).await;
    viewer
        .next_named("messages")
        .await
        .expect("frame")
        .expect("open");
    drop(viewer);
    rig.model.release();
    assert_eq!(rig.wait_for_end(&thread, &run).await, "success");
}

#[tokio::test]
async fn unknown_disconnect_mode_is_rejected() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let refused = rig
        .post(
            &format!("/api/threads/{thread}/runs/stream"),
            &body_with("hi", json!({"on_disconnect": "panic"})),
        )
        .await;
    assert_eq!(refused.refusal(422)[0]["type"], "literal_error");
}

#[tokio::test]
async fn disconnect_from_wait_cancels_run_unless_continue_is_set() {
    let rig = Rig::start().await;
    for (mode, end) in [("cancel", "interrupted"), ("continue", "success")] {
        let thread = rig.thread().await;
        let body = body_with(HELD_PROMPT, json!({"on_disconnect": mode}));
        let path = format!("/api/threads/{thread}/runs/wait");
        let waiting = rig.post(&path, &body);
        let runs = format!("/api/threads/{thread}/runs");
        let begun = crate::rig::until("start of the run", async || {
            let run = rig.get(&runs).await.ok()[0].clone();
            (run["status"] == "running").then(|| text(&run["run_id"]).to_owned())
        });
        let run = tokio::select! {
            _answer = waiting => panic!("{mode}: the run ended too early"),
            run = begun => run,
        };
        if mode == "continue" {
            rig.model.release();
        }
        assert_eq!(rig.wait_for_end(&thread, &run).await, end, "{mode}");
    }
}
