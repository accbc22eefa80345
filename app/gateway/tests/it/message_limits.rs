//! Limits of the messages of a request and of a thread, on every route that accepts messages.

use harness::runtime::runs::RunLimits;
use serde_json::{Value, json};

use crate::support::Gateway;

/// Returns a gateway that accepts four messages per request and ten per thread.
fn gateway() -> Gateway {
    let gateway = Gateway::new();
    gateway.node().set_limits(RunLimits {
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

/// Returns the requests that add `messages` to `thread`, by path and body.
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
        let response = gateway.post(&path, body).await;
        assert_eq!(response.code(), 422, "{path}: {}", response.text());
        assert!(
            response
                .text()
                .contains("has 5 messages; one request may bring 4"),
            "{path}: {}",
            response.text()
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
        let response = gateway
            .post(
                &path,
                json!({ "values": { "messages": messages(first, 4) } }),
            )
            .await;
        assert_eq!(response.code(), 200, "{}", response.text());
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
    // Replacing and removing messages does not make the thread longer.
    for values in [
        messages(10, 2),
        json!([{ "type": "remove", "id": "m11", "content": "" }]),
    ] {
        let response = gateway
            .post(&path, json!({ "values": { "messages": values } }))
            .await;
        assert_eq!(response.code(), 200, "{}", response.text());
    }
}

#[tokio::test]
async fn run_beyond_the_thread_limit_fails_with_an_error() {
    let gateway = gateway();
    gateway.node().set_limits(RunLimits {
        max_thread_messages: 3,
        ..RunLimits::default()
    });
    let thread = gateway.thread().await;
    let run = json!({ "assistant_id": "lead_agent", "input": { "messages": messages(0, 4) } });
    let response = gateway
        .post(&format!("/threads/{thread}/runs/stream"), run)
        .await;
    assert_eq!(response.code(), 200);
    assert!(
        response
            .text()
            .contains("the thread would hold 4 messages; it may hold 3"),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn input_beyond_the_thread_limit_is_rejected_before_the_run() {
    let gateway = gateway();
    gateway.node().set_limits(RunLimits {
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
