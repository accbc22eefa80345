//! `POST /api/threads/{thread}/runs/wait`.

use serde_json::json;

use crate::rig::{Rig, body, body_with, messages_of, text, visible_messages};

#[tokio::test]
async fn wait_returns_final_values() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let answer = rig
        .post(
            &format!("/api/threads/{thread}/runs/wait"),
            &body("then say x"),
        )
        .await;
    assert_eq!(
        visible_messages(&answer.ok()),
        messages_of(&[("human", "then say x"), ("ai", "x")])
    );
    assert!(
        answer.headers["content-location"]
            .to_str()
            .expect("text")
            .starts_with(&format!("/api/threads/{thread}/runs/"))
    );
    assert_eq!(
        rig.visible_messages(&thread).await,
        visible_messages(&answer.json())
    );
}

#[tokio::test]
async fn wait_for_failed_run_returns_reason() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let looping = "[[tool:ls {\"description\": \"a\", \"path\": \"/mnt/user-data\"}]][[tool:ls {\"description\": \"b\", \"path\": \"/mnt\"}]] then say x";
    let body = body_with(looping, json!({"config": {"recursion_limit": 1}}));
    let answer = rig
        .post(&format!("/api/threads/{thread}/runs/wait"), &body)
        .await
        .ok();
    assert_eq!(
        answer["__error__"]["error"], "GraphRecursionError",
        "{answer}"
    );
    assert!(
        text(&answer["__error__"]["message"]).contains('1'),
        "{answer}"
    );
}
