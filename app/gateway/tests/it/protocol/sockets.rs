//! WebSockets, over a real connection.

use std::net::SocketAddr;
use std::time::Duration;

use deerflow_gateway::{ServeOptions, serve};
use futures_util::{SinkExt, StreamExt};
use harness::runtime::tasks::{TaskKind, Tasks};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::{asking, count_ends, fresh, root, start};
use crate::support::Gateway;

pub(crate) async fn served(gateway: &Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (router, shutdown) = (gateway.router.clone(), gateway.shutdown.clone());
    let serving = serve(listener, router, shutdown, ServeOptions::default());
    let _detached = Tasks::new().spawn(TaskKind::Service, "server", serving);
    address
}

/// Opens a socket of a thread.
pub(crate) async fn connect(
    address: SocketAddr,
    thread: &str,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Error> {
    let url = format!(
        "ws://localhost:{}/threads/{thread}/stream/events",
        address.port()
    );
    let mut request = url.into_client_request().expect("a request");
    for (name, value) in headers {
        let value = value.parse().expect("a value");
        request.headers_mut().insert(*name, value);
    }
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (stream, _) = client_async(request, stream).await?;
    Ok(Socket {
        stream,
        events: Vec::new(),
        sent: 0,
    })
}

pub(crate) struct Socket {
    pub(crate) stream: WebSocketStream<TcpStream>,
    /// Events so far.
    pub(super) events: Vec<Value>,
    sent: u64,
}

impl Socket {
    /// Receives the next frame: an event, which is collected, or an answer.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let frame = tokio::time::timeout(Duration::from_secs(20), self.stream.next()).await;
        let frame = frame
            .expect("a frame in time")
            .expect("no end")
            .expect("a frame");
        let Message::Text(text) = frame else {
            return None;
        };
        let value: Value = serde_json::from_str(&text).expect("JSON");
        if value["type"] == "event" {
            self.events.push(value);
            return None;
        }
        Some(value)
    }

    pub(super) async fn send(&mut self, frame: Message) -> Value {
        self.stream.send(frame).await.expect("sent");
        loop {
            if let Some(answer) = self.next().await {
                return answer;
            }
        }
    }

    pub(super) async fn command(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let body = json!({ "id": self.sent, "method": method, "params": params });
        let answer = self.send(Message::text(body.to_string())).await;
        assert_eq!(answer["id"], self.sent);
        answer
    }

    pub(super) async fn subscribe(&mut self, channels: Value) -> Value {
        let params = json!({ "channels": channels });
        let answer = self.command("subscription.subscribe", params).await;
        assert_eq!(answer["type"], "success", "{answer}");
        answer["result"].clone()
    }

    pub(super) async fn read(&mut self, ends: usize) {
        while count_ends(&self.events) < ends {
            assert_eq!(self.next().await, None);
        }
    }
}

/// Returns a thread whose run has ended.
async fn with_ended_run(gateway: &Gateway, address: SocketAddr) -> String {
    let thread = fresh();
    start(gateway, &thread, "say hi").await;
    let mut watcher = connect(address, &thread, &[]).await.expect("a socket");
    watcher.subscribe(json!(["lifecycle"])).await;
    watcher.read(1).await;
    thread
}

#[tokio::test]
async fn socket_carries_commands_and_events() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let mut socket = connect(address, &fresh(), &[]).await.expect("a socket");
    let tree = socket.command("agent.getTree", json!({})).await;
    assert_eq!(tree["error"], "no_such_run");
    socket.subscribe(json!(["lifecycle", "values"])).await;
    let started = socket.command("run.start", asking("say hi")).await;
    assert!(started["result"]["run_id"].is_string(), "{started}");
    socket.read(1).await;
    assert_eq!(root(&socket.events), ["running", "completed"]);
    let tree = socket.command("agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "completed");
    let last = socket.events.last().expect("an event");
    assert_eq!(tree["meta"]["applied_through_seq"], last["seq"]);
}

#[tokio::test]
async fn bad_frames_are_answered_and_the_socket_lives() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let mut socket = connect(address, &fresh(), &[]).await.expect("a socket");
    for (frame, id) in [
        (Message::text("zzz"), Value::Null),
        (Message::text("[]"), Value::Null),
        (Message::text("{\"id\":1}"), json!(1)),
        (Message::text("{\"id\":true,\"method\":\"x\"}"), json!(true)),
        (
            Message::binary(b"{\"id\":1,\"method\":\"x\"}".to_vec()),
            Value::Null,
        ),
    ] {
        let answer = socket.send(frame).await;
        assert_eq!(
            (&answer["error"], &answer["id"]),
            (&json!("invalid_argument"), &id)
        );
    }
    for (method, params, code) in [
        ("no.such", json!({}), "unknown_command"),
        (
            "subscription.subscribe",
            json!({ "channels": ["nope"] }),
            "invalid_argument",
        ),
        ("subscription.subscribe", json!(5), "invalid_argument"),
        ("subscription.unsubscribe", json!({}), "invalid_argument"),
        (
            "subscription.unsubscribe",
            json!({ "subscription_id": "x" }),
            "no_such_subscription",
        ),
        (
            "input.respond",
            json!({ "interrupt_id": "q", "namespace": ["x"] }),
            "no_such_interrupt",
        ),
    ] {
        let answer = socket.command(method, params.clone()).await;
        assert_eq!(answer["error"], code, "{method} {params}");
    }
}

#[tokio::test]
async fn number_of_subscriptions_is_limited() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let mut socket = connect(address, &fresh(), &[]).await.expect("a socket");
    let mut refused = 0;
    for _ in 0..1_000 {
        let params = json!({ "channels": ["values"] });
        let answer = socket.command("subscription.subscribe", params).await;
        refused += usize::from(answer["error"] == "invalid_argument");
    }
    assert_eq!(refused, 1_000 - 256);
    let known = socket.command(
        "subscription.unsubscribe",
        json!({ "subscription_id": "sub-7" }),
    );
    assert_eq!(known.await["type"], "success");
    socket.subscribe(json!(["values"])).await;
}

#[tokio::test]
async fn late_subscription_gets_the_held_events_once() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = fresh();
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    socket.subscribe(json!(["lifecycle"])).await;
    start(&gateway, &thread, "say hi").await;
    socket.read(1).await;
    let late = socket.subscribe(json!(["values", "lifecycle"])).await;
    let replayed = late["replayed_events"].as_u64().expect("a number");
    assert!(replayed > 0, "{late}");
    while (socket.events.len() as u64) < replayed + 2 {
        assert_eq!(socket.next().await, None);
    }
    let mut seqs: Vec<_> = socket
        .events
        .iter()
        .map(|event| event["seq"].as_u64())
        .collect();
    seqs.sort();
    seqs.dedup();
    assert_eq!(seqs.len(), socket.events.len());
    let mut other = connect(address, &thread, &[]).await.expect("a socket");
    let first = other.subscribe(json!(["values", "lifecycle"])).await;
    assert_eq!(first["replayed_events"], replayed + 2);
}

#[tokio::test]
async fn subscriptions_sent_at_once_share_one_order() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = with_ended_run(&gateway, address).await;
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    for (id, channels) in [["lifecycle", "input"], ["values", "messages"]]
        .iter()
        .enumerate()
    {
        let params = json!({ "channels": channels });
        let body = json!({ "id": id, "method": "subscription.subscribe", "params": params });
        let frame = Message::text(body.to_string());
        socket.stream.feed(frame).await.expect("accepted");
    }
    socket.stream.flush().await.expect("sent");
    let mut answers = Vec::new();
    while answers.len() < 2 || count_ends(&socket.events) < 1 {
        answers.extend(socket.next().await);
    }
    for answer in &answers {
        assert_ne!(answer["result"]["replayed_events"], 0, "{answer}");
        assert_eq!(answer["meta"]["applied_through_seq"], 0, "{answer}");
    }
    let seqs: Vec<_> = socket
        .events
        .iter()
        .map(|event| event["seq"].as_u64())
        .collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    let last = socket.events.last().expect("an event");
    assert_eq!(root(std::slice::from_ref(last)), ["completed"]);
    assert!(seqs.len() > root(&socket.events).len(), "{seqs:?}");
}

#[tokio::test]
async fn events_of_a_subscription_precede_later_answers() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = with_ended_run(&gateway, address).await;
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    let subscribed = socket.subscribe(json!(["lifecycle"])).await;
    // The next command is sent while the events are delayed.
    let tree = socket.command("agent.getTree", json!({})).await;
    let replayed = subscribed["replayed_events"].as_u64().expect("a number");
    assert_eq!(socket.events.len() as u64, replayed);
    let last = socket.events.last().expect("an event");
    assert_eq!(tree["meta"]["applied_through_seq"], last["seq"]);
}

#[tokio::test]
async fn page_of_other_origin_opens_no_socket() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let refused = connect(address, &fresh(), &[("origin", "https://evil.test")]).await;
    let Err(Error::Http(response)) = refused else {
        panic!("the socket was opened")
    };
    assert_eq!(response.status().as_u16(), 403);
    let own = format!("http://localhost:{}", address.port());
    connect(address, &fresh(), &[("origin", &own)])
        .await
        .expect("a socket");
}

#[tokio::test]
async fn run_continues_if_its_socket_closes_at_once() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let thread = fresh();
    let mut socket = connect(address, &thread, &[]).await.expect("a socket");
    let body = json!({ "id": 1, "method": "run.start", "params": asking("say hi") });
    let frame = Message::text(body.to_string());
    socket.stream.send(frame).await.expect("sent");
    drop(socket);
    let mut watcher = connect(address, &thread, &[]).await.expect("a socket");
    watcher.subscribe(json!(["lifecycle"])).await;
    watcher.read(1).await;
    assert_eq!(root(&watcher.events), ["running", "completed"]);
}

#[tokio::test]
async fn too_large_frame_closes_the_socket() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let mut socket = connect(address, &fresh(), &[]).await.expect("a socket");
    let huge = Message::text("x".repeat(21 * 1024 * 1024));
    // The server may close the connection before it has read the frame.
    let _broken = socket.stream.send(huge).await;
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        while let Some(Ok(frame)) = socket.stream.next().await {
            assert!(!matches!(frame, Message::Text(_)));
        }
    });
    ended.await.expect("the socket is closed");
}
