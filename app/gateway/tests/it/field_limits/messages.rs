//! Messages and other channel values: limited one by one, on every route and in every command.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{MESSAGE, assert_refused, lead_thread, refusal};
use crate::protocol::{command, connect, served};
use crate::support::Gateway;

/// Returns a message with `size` bytes of JSON. Its text is as short as the agent's answer may be.
fn message(size: usize) -> Value {
    let of = |text: String| json!({ "type": "human", "content": "say x", "name": text });
    let fixed = of(String::new()).to_string().len();
    of("x".repeat(size - fixed))
}

/// Returns the requests that contain `message`: their paths, bodies, and the name of the field.
fn requests(thread: &str, message: &Value) -> Vec<(String, Value, &'static str)> {
    let messages = json!({ "messages": [message] });
    let with = |key: &str, value: Value| json!({ "assistant_id": "lead_agent", key: value });
    let run = with("input", messages.clone());
    let command = with("command", json!({ "update": messages }));
    let sent = json!([{ "node": "model", "input": messages }]);
    let goto = with("command", json!({ "goto": sent }));
    let resume = with("command", json!({ "resume": message }));
    let pairs = with("command", json!({ "update": [["messages", [message]]] }));
    let state = json!({ "values": messages });
    let step = json!({ "values": messages, "as_node": "__start__" });
    let steps = json!({ "supersteps": [{ "updates": [step] }] });
    let cron = json!({ "assistant_id": "lead_agent", "schedule": "0 3 * * *", "input": messages });
    let of = |end: &str| format!("/threads/{thread}/{end}");
    let (input, update) = ("input.messages[0]", "command.update.messages[0]");
    vec![
        (of("runs"), run.clone(), input),
        (of("runs/stream"), run.clone(), input),
        (of("runs/wait"), run.clone(), input),
        (of("runs"), command, update),
        (of("runs"), pairs, update),
        (of("runs"), goto, "command.goto.input.messages[0]"),
        (of("runs"), resume, "command.resume"),
        (of("state"), state.clone(), "values.messages[0]"),
        (format!("/api{}", of("runs/stream")), run.clone(), input),
        (format!("/api{}", of("state")), state, "values.messages[0]"),
        ("/runs/wait".to_owned(), run.clone(), input),
        ("/api/runs/stream".to_owned(), run.clone(), input),
        ("/runs/batch".to_owned(), json!([run]), input),
        ("/runs/crons".to_owned(), cron, input),
        (
            "/threads".to_owned(),
            steps,
            "supersteps[0].values.messages[0]",
        ),
    ]
}

#[tokio::test]
async fn message_beyond_the_limit_is_413_and_changes_nothing() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    for (path, body, field) in requests(&thread, &message(MESSAGE + 1)) {
        let response = gateway.post(&path, body).await;
        assert_refused(&response, field, MESSAGE);
    }
    let state = gateway.get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state.json()["values"], json!({}));
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs.json(), json!([]));
    assert_eq!(gateway.post("/threads/count", json!({})).await.json(), 1);
    assert_eq!(gateway.post("/runs/crons/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn message_of_exactly_the_limit_is_accepted() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let values = json!({ "messages": [message(MESSAGE)] });
    let state = json!({ "values": values });
    let path = format!("/threads/{thread}/state");
    assert_eq!(gateway.post(&path, state).await.code(), 200);
    let run = json!({ "assistant_id": "lead_agent", "input": values });
    let path = format!("/threads/{thread}/runs/wait");
    assert_eq!(gateway.post(&path, run).await.code(), 200);
}

#[tokio::test]
async fn command_with_a_large_field_starts_no_run() {
    let gateway = Gateway::new();
    let thread = lead_thread(&gateway).await;
    let input = json!({ "messages": [message(MESSAGE + 1)] });
    let params = json!({ "assistant_id": "lead_agent", "input": input });
    let expected = format!("413: {}", refusal("input.messages[0]", MESSAGE));
    let answer = command(&gateway, &thread, "run.start", params.clone()).await;
    assert_eq!(answer.json()["message"], expected);
    let metadata = json!({ "assistant_id": "lead_agent", "metadata": super::sized(65_537) });
    let answer = command(&gateway, &thread, "run.start", metadata).await;
    let expected_metadata = format!("413: {}", refusal("metadata", 65_536));
    assert_eq!(answer.json()["message"], expected_metadata);

    let mut socket = connect(served(&gateway).await, &thread, &[])
        .await
        .expect("a socket");
    let sent = json!({ "id": 4, "method": "run.start", "params": params });
    let sent = Message::Text(sent.to_string().into());
    socket.stream.send(sent).await.expect("sent");
    let answer = tokio::time::timeout(Duration::from_secs(20), socket.next());
    let answer = answer.await.expect("in time").expect("an answer");
    assert_eq!(answer["message"], expected);
    let runs = gateway.get(&format!("/threads/{thread}/runs")).await;
    assert_eq!(runs.json(), json!([]));
}
