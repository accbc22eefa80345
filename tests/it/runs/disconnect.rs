//! What becomes of a run whose viewer goes away.

use serde_json::json;

use crate::rig::{Rig, body_with, said, text};

/// An answer that does not end before somebody has left.
const HELD: &str = "[[slow 40x1ms]][[hold 5]]";

async fn leave(rig: &Rig, on_disconnect: serde_json::Value) -> (String, String) {
    let thread = rig.thread().await;
    let body = body_with(HELD, json!({"on_disconnect": on_disconnect}));
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
async fn a_run_stops_when_its_viewer_leaves_and_nobody_said_otherwise() {
    let rig = Rig::start().await;
    for mode in [json!("cancel"), json!(null)] {
        let (thread, run) = leave(&rig, mode).await;
        assert_eq!(rig.settled(&thread, &run).await, "interrupted");
    }
}

#[tokio::test]
async fn a_run_that_shall_continue_does() {
    let rig = Rig::start().await;
    let (thread, run) = leave(&rig, json!("continue")).await;
    rig.model.release();
    assert_eq!(rig.settled(&thread, &run).await, "success");
    let answer: String = (0..40).map(|n| format!("tok{n} ")).collect();
    assert_eq!(
        rig.talk(&thread).await,
        said(&[("human", HELD), ("ai", &answer)])
    );
}

#[tokio::test]
async fn a_viewer_who_only_joined_does_not_take_the_run_along() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let run = rig
        .background(
            &thread,
            &body_with(HELD, json!({"on_disconnect": "cancel"})),
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
    assert_eq!(rig.settled(&thread, &run).await, "success");
}

#[tokio::test]
async fn a_word_that_means_nothing_is_refused() {
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
async fn who_stops_waiting_stops_the_run_unless_it_shall_continue() {
    let rig = Rig::start().await;
    for (mode, end) in [("cancel", "interrupted"), ("continue", "success")] {
        let thread = rig.thread().await;
        let body = body_with(HELD, json!({"on_disconnect": mode}));
        let path = format!("/api/threads/{thread}/runs/wait");
        let waiting = rig.post(&path, &body);
        let runs = format!("/api/threads/{thread}/runs");
        let begun = crate::rig::until("the run to begin", async || {
            let run = rig.get(&runs).await.ok()[0].clone();
            (run["status"] == "running").then(|| text(&run["run_id"]).to_owned())
        });
        let run = tokio::select! {
            _answer = waiting => panic!("{mode}: it was not to end yet"),
            run = begun => run,
        };
        if mode == "continue" {
            rig.model.release();
        }
        assert_eq!(rig.settled(&thread, &run).await, end, "{mode}");
    }
}
