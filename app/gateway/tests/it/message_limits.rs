//! Bounds on the messages of a request and of a thread, on every route that takes messages.

use harness::runtime::runs::RunLimits;
use serde_json::{Value, json};

use crate::support::Gateway;

/// A gateway that takes four messages in a request, and ten in a thread.
fn gateway() -> Gateway {
    let gateway = Gateway::new();
    gateway.runs.set_limits(RunLimits {
        max_input_messages: 4,
        max_thread_messages: 10,
        ..RunLimits::default()
    });
    gateway
}

fn messages(first: usize, count: usize) -> Value {
    (first..first + count)
        .map(|n| json!({ "type": "human", "id": format!("m{n}"), "content": "say x" }))
        .collect()
}

/// The requests that bring `messages` to `thread`, by path and body.
fn requests(thread: &str, messages: &Value) -> Vec<(String, Value)> {
    let run = json!({ "assistant_id": "lead_agent", "input": { "messages": messages } });
    let command =
        json!({ "assistant_id": "lead_agent", "command": { "update": { "messages": messages } } });
    let sent = json!([{ "node": "model", "input": { "messages": messages } }]);
    let goto = json!({ "assistant_id": "lead_agent", "command": { "goto": sent } });
    let state = json!({ "values": { "messages": messages } });
    let of_thread = |end: &str| format!("/threads/{thread}/{end}");
    vec![
        (of_thread("runs"), run.clone()),
        (of_thread("runs/stream"), run.clone()),
        (of_thread("runs/wait"), run.clone()),
        (of_thread("runs"), command),
        (of_thread("runs"), goto),
        (of_thread("state"), state.clone()),
        (format!("/api{}", of_thread("runs/stream")), run.clone()),
        (format!("/api{}", of_thread("state")), state),
        ("/runs/wait".to_owned(), run.clone()),
        ("/runs/batch".to_owned(), json!([run])),
    ]
}

#[tokio::test]
async fn too_many_messages_in_a_request_are_422() {
    let gateway = gateway();
    let made = gateway
        .post(
            "/threads",
            json!({ "metadata": { "graph_id": "lead_agent" } }),
        )
        .await
        .json();
    let thread = made["thread_id"].as_str().expect("an id").to_owned();
    for (path, body) in requests(&thread, &messages(0, 5)) {
        let answer = gateway.post(&path, body).await;
        assert_eq!(answer.code(), 422, "{path}: {}", answer.text());
        assert!(
            answer
                .text()
                .contains("has 5 messages; one request may bring 4"),
            "{path}: {}",
            answer.text()
        );
    }
    let state = gateway
        .get(&format!("/threads/{thread}/state"))
        .await
        .json();
    assert_eq!(
        state["values"]["messages"].as_array().map_or(0, Vec::len),
        0,
        "{state}"
    );
}

#[tokio::test]
async fn an_update_beyond_the_thread_limit_is_422() {
    let gateway = gateway();
    let thread = gateway.thread().await;
    let run = json!({ "assistant_id": "lead_agent", "input": { "messages": messages(0, 1) } });
    assert_eq!(
        gateway
            .post(&format!("/threads/{thread}/runs/wait"), run)
            .await
            .code(),
        200
    );
    let path = format!("/threads/{thread}/state");
    for first in [10, 20] {
        let answer = gateway
            .post(
                &path,
                json!({ "values": { "messages": messages(first, 4) } }),
            )
            .await;
        assert_eq!(answer.code(), 200, "{}", answer.text());
    }
    let refused = gateway
        .post(&path, json!({ "values": { "messages": messages(30, 1) } }))
        .await;
    assert_eq!(refused.code(), 422);
    assert!(
        refused
            .text()
            .contains("the thread would hold 11 messages; it may hold 10"),
        "{}",
        refused.text()
    );
    // Replacing and removing what is there does not make the thread longer.
    for values in [
        messages(10, 2),
        json!([{ "type": "remove", "id": "m11", "content": "" }]),
    ] {
        let answer = gateway
            .post(&path, json!({ "values": { "messages": values } }))
            .await;
        assert_eq!(answer.code(), 200, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_run_beyond_the_thread_limit_fails_and_says_so() {
    let gateway = gateway();
    gateway.runs.set_limits(RunLimits {
        max_thread_messages: 3,
        ..RunLimits::default()
    });
    let thread = gateway.thread().await;
    let run = json!({ "assistant_id": "lead_agent", "input": { "messages": messages(0, 4) } });
    let answer = gateway
        .post(&format!("/threads/{thread}/runs/stream"), run)
        .await;
    assert_eq!(answer.code(), 200);
    assert!(
        answer
            .text()
            .contains("the thread would hold 4 messages; it may hold 3"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn many_messages_beyond_the_thread_limit_are_refused_before_the_run() {
    let gateway = gateway();
    gateway.runs.set_limits(RunLimits {
        max_thread_messages: 150,
        ..RunLimits::default()
    });
    let thread = gateway.thread().await;
    let path = format!("/threads/{thread}/runs/wait");
    let bring = async |first| {
        let body =
            json!({ "assistant_id": "lead_agent", "input": { "messages": messages(first, 120) } });
        gateway.post(&path, body).await.code()
    };
    assert_eq!(bring(0).await, 200);
    assert_eq!(
        bring(0).await,
        200,
        "the same messages replace those that are there"
    );
    assert_eq!(bring(200).await, 422);
}
