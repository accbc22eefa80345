//! `POST /api/threads/{thread}/runs/wait`.

use serde_json::json;

use crate::rig::{Rig, body, body_with, said, talk, text};

#[tokio::test]
async fn waiting_gives_the_final_values() {
    let rig = Rig::start().await;
    let thread = rig.thread().await;
    let answer = rig
        .post(
            &format!("/api/threads/{thread}/runs/wait"),
            &body("then say x"),
        )
        .await;
    assert_eq!(
        talk(&answer.ok()),
        said(&[("human", "then say x"), ("ai", "x")])
    );
    assert!(
        answer.headers["content-location"]
            .to_str()
            .expect("text")
            .starts_with(&format!("/api/threads/{thread}/runs/"))
    );
    assert_eq!(rig.talk(&thread).await, talk(&answer.json()));
}

#[tokio::test]
async fn waiting_for_a_run_that_fails_says_why() {
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
