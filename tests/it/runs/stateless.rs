//! `POST /api/runs/stream` and `/api/runs/wait`.

use reqwest::Method;
use serde_json::json;

use crate::rig::{Rig, body, body_with, events, messages_of, visible_messages};

#[tokio::test]
async fn run_without_thread_creates_and_reports_one() {
    let rig = Rig::start().await;
    let stream = events(
        rig.request(Method::POST, "/api/runs/stream")
            .json(&body("then say x"))
            .send()
            .await
            .expect("answer"),
    )
    .await;
    let location = stream.response().headers()["content-location"]
        .to_str()
        .expect("text")
        .to_owned();
    let (thread, _) = location
        .strip_prefix("/api/threads/")
        .and_then(|rest| rest.split_once("/runs/"))
        .expect("a run's address");
    let frames = stream.collect().await.expect("whole stream");
    assert_eq!(frames[0].json().expect("json")["thread_id"], *thread);
    assert_eq!(
        rig.visible_messages(thread).await,
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
}

#[tokio::test]
async fn run_without_thread_supports_wait() {
    let rig = Rig::start().await;
    let values = rig.post("/api/runs/wait", &body("then say x")).await.ok();
    assert_eq!(
        visible_messages(&values),
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
}

#[tokio::test]
async fn run_configuration_may_name_the_thread() {
    let rig = Rig::start().await;
    let more = json!({"config": {"configurable": {"thread_id": "mine"}}});
    rig.post("/api/runs/wait", &body_with("then say x", more))
        .await
        .ok();
    assert_eq!(rig.visible_messages("mine").await.len(), 2);
    let wrong = json!({"config": {"configurable": {"thread_id": "../mine"}}});
    rig.post("/api/runs/wait", &body_with("then say x", wrong))
        .await
        .refusal(422);
}
