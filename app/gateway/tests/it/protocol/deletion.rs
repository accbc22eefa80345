//! Deletion of a thread under open streams, and connections that break.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use super::sockets::{connect, served};
use super::{asking, fresh, open, read, root, start};
use crate::support::Gateway;

async fn delete(gateway: &Gateway, thread: &str) {
    let path = format!("/threads/{thread}");
    let deleted = gateway.send("DELETE", &path, None).await;
    assert!(deleted.code() < 300, "{}", deleted.text());
}

#[tokio::test]
async fn stream_of_deleted_thread_breaks_when_a_new_one_runs() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let stream = open(&gateway, &thread, json!({})).await;
    start(&gateway, &thread, "say old").await;
    let (events, rest) = read_on(stream).await;
    assert_eq!(root(&events), ["running", "completed"]);
    delete(&gateway, &thread).await;
    start(&gateway, &thread, "say new").await;
    // The positions begin again, so the client must connect again.
    let mut rest = rest;
    let mut text = String::new();
    while let Ok(chunk) = rest.next().await.expect("no clean end") {
        text.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    assert!(!text.contains("event: "), "{text}");
    let events = read(open(&gateway, &thread, json!({})).await, 1).await;
    assert!(json!(events).to_string().contains("say new"));
}

/// Reads the events of one run and returns the rest of the stream.
async fn read_on(
    response: axum::response::Response,
) -> (Vec<serde_json::Value>, axum::body::BodyDataStream) {
    let mut chunks = response.into_body().into_data_stream();
    let events = super::read_from(&mut chunks, 1).await;
    (events, chunks)
}

#[tokio::test]
async fn socket_of_deleted_thread_closes_when_a_new_one_runs() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = gateway.thread().await;
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    socket.subscribe(json!(["lifecycle", "values"])).await;
    start(&gateway, &thread, "say old").await;
    socket.read(1).await;
    delete(&gateway, &thread).await;
    let unknown = socket.command("no.such", json!({})).await;
    assert_eq!(unknown["error"], "unknown_command");
    let read = socket.events.len();
    start(&gateway, &thread, "say new").await;
    while let Some(Ok(frame)) = socket.stream.next().await {
        assert!(!matches!(frame, Message::Text(_)), "{frame}");
    }
    assert_eq!(socket.events.len(), read);
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    socket.subscribe(json!(["lifecycle", "values"])).await;
    socket.read(1).await;
    let text = json!(socket.events).to_string();
    assert!(
        text.contains("say new") && !text.contains("say old"),
        "{text}"
    );
}

#[tokio::test]
async fn socket_broken_in_the_middle_of_a_command_changes_nothing() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = fresh();
    let body = json!({ "id": 1, "method": "run.start", "params": asking("say hi") });
    let body = body.to_string();
    for cut in [1, 2, 5, 40, body.len() + 7] {
        let socket = connect(address, &thread, &[]).await.expect("a socket");
        let length = u16::try_from(body.len()).expect("short").to_be_bytes();
        // A masked text frame with a length of 16 bits.
        let header = [0x81, 0xfe, length[0], length[1], 0, 0, 0, 0];
        let frame = [&header[..], body.as_bytes()].concat();
        let mut stream = socket.stream.into_inner();
        stream.write_all(&frame[..cut]).await.expect("sent");
        drop(stream);
    }
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    let tree = socket.command("agent.getTree", json!({})).await;
    assert_eq!(tree["error"], "no_such_run");
    let found = gateway.get(&format!("/threads/{thread}")).await;
    assert_eq!(found.code(), 404);
}

#[tokio::test]
async fn frames_of_other_kinds_do_not_end_the_socket() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let mut socket = connect(address, &fresh(), &[]).await.expect("a socket");
    for frame in [
        Message::binary(Vec::new()),
        Message::binary(vec![0xff; 100_000]),
        Message::text(""),
        Message::text("\u{0}"),
    ] {
        let answer = socket.send(frame).await;
        assert_eq!(answer["error"], "invalid_argument", "{answer}");
    }
    let pings = (0..100).map(|_| Message::Ping("x".into()));
    for ping in pings {
        socket.stream.send(ping).await.expect("sent");
    }
    socket.subscribe(json!(["values"])).await;
}

#[tokio::test]
async fn thousands_of_subscriptions_and_reconnects_are_answered() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = fresh();
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    let prefixes = vec![vec!["x".repeat(20)]; 200];
    for at in 0..3_000 {
        let params = json!({ "channels": ["values", "lifecycle"], "namespaces": prefixes });
        let answer = socket.command("subscription.subscribe", params).await;
        let expected = if at < 256 { "success" } else { "error" };
        assert_eq!(answer["type"], expected, "{at}: {answer}");
    }
    let params = json!({ "channels": ["lifecycle"], "subscription_id": "sub-1", "since": 0 });
    let again = socket.command("subscription.reconnect", params).await;
    assert_eq!(again["result"]["subscription_id"], "sub-1", "{again}");
    start(&gateway, &thread, "say hi").await;
    socket.read(1).await;
    assert_eq!(root(&socket.events), ["running", "completed"]);
}
