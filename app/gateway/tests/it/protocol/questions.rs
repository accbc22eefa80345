//! Answers to questions, and checkpoints that do not belong to the thread.

use serde_json::{Value, json};

use super::{asking, command, fresh, start};
use crate::keys::User;
use crate::support::Gateway;

/// Returns a thread whose run asks these questions.
async fn asked(gateway: &Gateway, questions: &str) -> String {
    let thread = gateway.thread().await;
    let run = start(gateway, &thread, &format!("ask {questions}")).await;
    gateway.wait_for_status(&thread, &run).await;
    thread
}

/// Answers questions with one command and returns the code of the error, or `ok`.
async fn respond(gateway: &Gateway, thread: &str, ids: &[&str]) -> String {
    let answers: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "interrupt_id": id, "response": "yes" }))
        .collect();
    let params = json!({ "responses": answers });
    let answer = command(gateway, thread, "input.respond", params).await;
    assert_eq!(answer.code(), 200);
    let answer = answer.json();
    answer["error"].as_str().unwrap_or("ok").to_owned()
}

/// Creates a thread of a user.
async fn thread_of(user: &User<'_>) -> String {
    let created = user.send("POST", "/threads", json!({})).await.json();
    created["thread_id"].as_str().expect("an id").to_owned()
}

async fn runs(gateway: &Gateway, thread: &str) -> Vec<Value> {
    let path = format!("/threads/{thread}/runs?limit=100");
    gateway
        .get(&path)
        .await
        .json()
        .as_array()
        .cloned()
        .expect("runs")
}

#[tokio::test]
async fn half_bad_batch_starts_no_run() {
    let gateway = Gateway::new();
    let thread = asked(&gateway, "red blue").await;
    for batch in [
        &["red", "nope"][..],
        &["nope", "red"],
        &["red", "blue", "nope"],
    ] {
        assert_eq!(respond(&gateway, &thread, batch).await, "no_such_interrupt");
    }
    assert_eq!(
        respond(&gateway, &thread, &["red", "red"]).await,
        "invalid_argument"
    );
    assert_eq!(runs(&gateway, &thread).await.len(), 1);
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(state["interrupts"].as_array().map(Vec::len), Some(2));
    assert_eq!(respond(&gateway, &thread, &["red", "blue"]).await, "ok");
    let all = runs(&gateway, &thread).await;
    assert_eq!(all.len(), 2);
    let run = all[0]["run_id"].as_str().expect("an id");
    assert_eq!(
        gateway.wait_for_status(&thread, run).await["status"],
        "success"
    );
    // The questions are answered.
    assert_eq!(
        respond(&gateway, &thread, &["red"]).await,
        "no_such_interrupt"
    );
    assert_eq!(runs(&gateway, &thread).await.len(), 2);
}

#[tokio::test]
async fn question_of_another_thread_is_not_answered() {
    let gateway = Gateway::new();
    let (one, other) = (asked(&gateway, "red").await, asked(&gateway, "green").await);
    assert_eq!(
        respond(&gateway, &one, &["green"]).await,
        "no_such_interrupt"
    );
    assert_eq!(runs(&gateway, &one).await.len(), 1);
    assert_eq!(runs(&gateway, &other).await.len(), 1);
    assert_eq!(respond(&gateway, &other, &["green"]).await, "ok");
}

#[tokio::test]
async fn question_of_another_user_is_not_answered() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let thread = thread_of(&ann).await;
    let path = format!("/threads/{thread}/commands");
    let ask = json!({ "id": 1, "method": "run.start", "params": asking("ask red") });
    let started = ann.send("POST", &path, ask).await.json();
    let run = started["result"]["run_id"].as_str().expect("an id");
    let join = format!("/threads/{thread}/runs/{run}/join");
    ann.send("GET", &join, Value::Null).await;
    let params = json!({ "interrupt_id": "red", "response": "yes" });
    let answer = json!({ "id": 2, "method": "input.respond", "params": params });
    let refused = bob.send("POST", &path, answer.clone()).await.json();
    assert_eq!(refused["error"], "unknown_error");
    assert!(
        refused["message"]
            .as_str()
            .expect("a text")
            .starts_with("404: ")
    );
    let accepted = ann.send("POST", &path, answer).await.json();
    assert_eq!(accepted["type"], "success", "{accepted}");
}

/// Returns the parameters of a run that starts from a checkpoint.
fn from(checkpoint: &Value) -> Value {
    let mut params = asking("say hi");
    params["config"] = json!({ "configurable": { "checkpoint_id": checkpoint } });
    params
}

/// Returns the id of the newest checkpoint of a state.
fn checkpoint_of(state: &Value) -> Value {
    let id = state["checkpoint"]["checkpoint_id"].clone();
    assert!(id.is_string(), "{state}");
    id
}

#[tokio::test]
async fn checkpoint_of_another_thread_starts_no_run() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let theirs = thread_of(&bob).await;
    let (own, other) = (thread_of(&ann).await, thread_of(&ann).await);
    for (user, thread) in [(&bob, &theirs), (&ann, &own), (&ann, &other)] {
        let body = json!({ "id": 1, "method": "run.start", "params": asking("say hi") });
        let path = format!("/threads/{thread}/commands");
        let started = user.send("POST", &path, body).await.json();
        let run = started["result"]["run_id"].as_str().expect("an id");
        let join = format!("/threads/{thread}/runs/{run}/join");
        user.send("GET", &join, Value::Null).await;
    }
    let state = async |user: &User<'_>, thread: &str| {
        let path = format!("/threads/{thread}/state");
        checkpoint_of(&user.send("GET", &path, Value::Null).await.json())
    };
    let foreign = [state(&bob, &theirs).await, state(&ann, &other).await];
    let unknown = json!(fresh());
    for checkpoint in foreign.iter().chain([&unknown]) {
        for thread in [own.clone(), fresh()] {
            let body = json!({ "id": 2, "method": "run.start", "params": from(checkpoint) });
            let path = format!("/threads/{thread}/commands");
            let refused = ann.send("POST", &path, body).await;
            assert_eq!(refused.code(), 200);
            let refused = refused.json();
            assert_eq!(refused["error"], "unknown_error", "{refused}");
            let message = refused["message"].as_str().expect("a text");
            assert!(message.starts_with('4'), "{message}");
            let list = format!("/threads/{thread}/runs");
            let listed = ann.send("GET", &list, Value::Null).await;
            if thread == own {
                assert_eq!(listed.json().as_array().map(Vec::len), Some(1));
            } else {
                assert_eq!(listed.code(), 404, "{}", listed.text());
            }
        }
    }
    let body = json!({ "id": 3, "method": "run.start", "params": from(&state(&ann, &own).await) });
    let path = format!("/threads/{own}/commands");
    assert_eq!(
        ann.send("POST", &path, body).await.json()["type"],
        "success"
    );
}
