//! The streaming protocol: commands, event streams and sockets.

mod commands;
mod deletion;
mod events;
mod questions;
mod sockets;

use std::time::Duration;

use axum::body::BodyDataStream;
use axum::response::Response;
use futures_util::StreamExt;
use harness::ids::{IdSource, SystemIds};
use serde_json::{Value, json};

pub(crate) use self::sockets::{connect, served};
use crate::support::{Gateway, HttpResponse};

/// Returns the id of a thread that does not exist.
fn fresh() -> String {
    SystemIds::default().thread_id().to_string()
}

/// Sends a command.
pub(crate) async fn command(
    gateway: &Gateway,
    thread: &str,
    method: &str,
    params: Value,
) -> HttpResponse {
    let body = json!({ "id": 3, "method": method, "params": params });
    let path = format!("/threads/{thread}/commands");
    gateway.post(&path, body).await
}

/// Starts a run that says `text` and returns its id.
async fn start(gateway: &Gateway, thread: &str, text: &str) -> String {
    let answer = command(gateway, thread, "run.start", asking(text)).await;
    let answer = answer.json();
    let run = answer["result"]["run_id"].as_str();
    run.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Returns the parameters of a run with one message.
fn asking(text: &str) -> Value {
    json!({ "assistant_id": "lead_agent", "input": { "messages": [{ "role": "user", "content": text }] } })
}

/// Opens the stream of all events of a thread.
async fn open(gateway: &Gateway, thread: &str, more: Value) -> Response {
    let mut body = json!({ "channels": ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "custom"] });
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    let path = format!("/threads/{thread}/stream/events");
    let opened = gateway.open("POST", &path, body.to_string(), &[]).await;
    assert_eq!(opened.status().as_u16(), 200);
    opened
}

/// Reads events until `ends` runs have ended.
async fn read(response: Response, ends: usize) -> Vec<Value> {
    read_from(&mut response.into_body().into_data_stream(), ends).await
}

/// Reads events of an open stream until `ends` runs have ended.
async fn read_from(chunks: &mut BodyDataStream, ends: usize) -> Vec<Value> {
    let (mut text, mut events) = (String::new(), Vec::new());
    while count_ends(&events) < ends {
        let chunk = tokio::time::timeout(Duration::from_secs(20), chunks.next()).await;
        let chunk = chunk.expect("an event in time").expect("no end");
        text.push_str(std::str::from_utf8(&chunk.expect("bytes")).expect("UTF-8"));
        while let Some((frame, rest)) = text.split_once("\r\n\r\n") {
            let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
            events.extend(data.map(|data| serde_json::from_str::<Value>(data).expect("JSON")));
            text = rest.to_owned();
        }
    }
    events
}

fn count_ends(events: &[Value]) -> usize {
    let names = ["completed", "failed", "interrupted"];
    root(events)
        .iter()
        .filter(|name| names.contains(name))
        .count()
}

/// Returns the names of the events of the runs themselves.
fn root(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter(|event| event["method"] == "lifecycle" && event["params"]["namespace"] == json!([]))
        .map(|event| event["params"]["data"]["event"].as_str().expect("a name"))
        .collect()
}

/// Returns position and id of each event.
fn places(events: &[Value]) -> Vec<(u64, String)> {
    events
        .iter()
        .map(|event| {
            let id = event["event_id"].as_str().expect("an id").to_owned();
            (event["seq"].as_u64().expect("a position"), id)
        })
        .collect()
}
