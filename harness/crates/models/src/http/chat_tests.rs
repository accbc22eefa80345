//! The adapter against a local server that writes raw HTTP.

#[path = "chat_failure_tests.rs"]
mod failure;

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::super::test_server::{read_request, wait_for_disconnect};
use super::*;
use crate::openai::{ChatCompletions, Dialect};
use deerflow_core::clock::SystemClock;
use deerflow_core::messages::{Message, MessageAccumulator};
use deerflow_core::tasks::{TaskKind, Tasks};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Action of the server after a request.
#[derive(Clone)]
enum Reply {
    /// Sends this and closes.
    Send(String),
    /// Sends this and keeps the connection open until the client disconnects.
    SendAndHang(String),
    /// Sends these pieces, one per minute, and closes.
    Drip(Vec<String>),
}

/// Starts a server that sends the same reply to every request. Returns its address and a channel
/// with the requests and the disconnects.
async fn server(reply: Reply) -> (String, mpsc::UnboundedReceiver<ServerEvent>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (report, events) = mpsc::unbounded_channel();
    let tasks = Tasks::new();
    tasks.spawn(TaskKind::Service, "test server", async move {
        while let Ok((socket, _)) = listener.accept().await {
            serve(socket, &reply, &report).await;
        }
    });
    (address, events, tasks)
}

#[derive(Debug)]
enum ServerEvent {
    Request { head: String, body: Value },
    Disconnected,
}

async fn serve(mut socket: TcpStream, reply: &Reply, report: &mpsc::UnboundedSender<ServerEvent>) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    let _ = report.send(ServerEvent::Request { head, body });
    match reply {
        Reply::Send(text) => {
            let _ = socket.write_all(text.as_bytes()).await;
        }
        Reply::SendAndHang(text) => {
            let _ = socket.write_all(text.as_bytes()).await;
            wait_for_disconnect(&mut socket).await;
            let _ = report.send(ServerEvent::Disconnected);
        }
        Reply::Drip(pieces) => {
            for piece in pieces {
                let _ = socket.write_all(piece.as_bytes()).await;
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        }
    }
}

fn model(address: &str, more: Value) -> HttpChatModel<ChatCompletions> {
    let mut entry = ModelEntry::new("entry", "openai", "gpt-x");
    entry.extra = json!({"base_url": address, "api_key": "sk-canary", "temperature": 0})
        .as_object()
        .unwrap()
        .clone();
    entry.extra.extend(more.as_object().unwrap().clone());
    let info = ModelInfo {
        name: "entry".to_owned(),
        model: "gpt-x".to_owned(),
        provider: "openai".to_owned(),
        supports_vision: false,
    };
    let (wire, endpoint) = ChatCompletions::of(&entry, Dialect::OPENAI).unwrap();
    HttpChatModel::new(
        entry,
        info,
        wire,
        endpoint,
        SharedHttp::new().unwrap(),
        Arc::new(SystemClock),
    )
}

fn request() -> ModelRequest {
    ModelRequest {
        message_id: "m1".to_owned(),
        system: None,
        messages: vec![Message::human("hi")],
        tools: Arc::default(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}

/// Returns the text that arrived, and the error that ended it.
async fn call_model(reply: Reply, more: Value) -> (String, Option<ModelError>) {
    let (address, _events, _tasks) = server(reply).await;
    let mut accumulator = MessageAccumulator::new("m1");
    let mut stream = match model(&address, more).stream(request()).await {
        Ok(stream) => stream,
        Err(error) => return (String::new(), Some(error)),
    };
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => accumulator.push(&chunk),
            Err(error) => failure = Some(error),
        }
    }
    (accumulator.finish().content.text(), failure)
}

fn http_reply(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Send(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

#[tokio::test]
async fn stream_is_requested_and_decoded() {
    let (address, mut events, _tasks) = server(Reply::Send(format!("{HEAD}{HELLO}{END}"))).await;
    let stream = model(
        &address,
        json!({"default_headers": {"x-team": "deer"}, "default_query": {"v": 2}}),
    )
    .stream(request())
    .await
    .unwrap();
    let chunks: Vec<MessageChunk> = stream.map(Result::unwrap).collect().await;
    assert_eq!(
        chunks
            .iter()
            .map(|chunk| chunk.content.as_str())
            .collect::<String>(),
        "hello"
    );
    assert_eq!(chunks.last().unwrap().chunk_position, Some("last"));
    let Some(ServerEvent::Request { head, body }) = events.recv().await else {
        panic!("no request")
    };
    for part in [
        "post /v1/chat/completions?v=2 ",
        "authorization: bearer sk-canary",
        "x-team: deer",
        "content-type: application/json",
    ] {
        assert!(head.contains(part), "{part}: {head}");
    }
    assert_eq!(
        body,
        json!({"model": "gpt-x", "messages": [{"role": "user", "content": "hi"}], "stream": true,
            "stream_options": {"include_usage": true}, "temperature": 0})
    );
}

#[tokio::test]
async fn unstreamed_answer_is_decoded() {
    let body = r#"{"model":"g","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let reply = http_reply("200 OK", "content-type: application/json\r\n", body);
    assert_eq!(
        call_model(reply, json!({})).await,
        ("whole".to_owned(), None)
    );
    let empty = http_reply(
        "200 OK",
        "content-type: application/json\r\n",
        r#"{"choices":[]}"#,
    );
    let (_, error) = call_model(empty, json!({})).await;
    assert!(error.is_some_and(
        |error| error.kind == ModelErrorKind::Transient && error.message.contains("no choices")
    ));
}

const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn complete_answer_survives_connection_error() {
    // A content length that is not reached and a truncated chunk are transport errors.
    let short = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{HELLO}{FINISH}"
    );
    let half = format!("{short}data: {{\"choices\":[],\"usa");
    for stream in [short, half] {
        assert_eq!(
            call_model(Reply::Send(stream), json!({})).await,
            ("hello".to_owned(), None)
        );
    }
    let unfinished = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{HELLO}"
    );
    let (text, error) = call_model(Reply::Send(unfinished), json!({})).await;
    assert_eq!(
        (text.as_str(), error.map(|error| error.kind)),
        ("hello", Some(ModelErrorKind::Transient))
    );
}

#[tokio::test(start_paused = true)]
async fn open_connection_after_answer_is_closed_soon() {
    let started = Instant::now();
    assert_eq!(
        call_model(
            Reply::SendAndHang(format!("{HEAD}{HELLO}{FINISH}")),
            json!({})
        )
        .await,
        ("hello".to_owned(), None)
    );
    assert!(
        started.elapsed() < Duration::from_secs(6),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn idle_deadline_is_extended_by_events_not_comments() {
    let limit = json!({"stream_chunk_timeout": 100});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let body = [
        head,
        "{\"choices\":[{\"index\":0,",
        "\"message\":{\"content\":\"whole\"},",
        "\"finish_reason\":\"stop\"}]}",
    ];
    let (text, error) =
        call_model(Reply::Drip(body.map(str::to_owned).to_vec()), limit.clone()).await;
    assert_eq!((text.as_str(), error), ("whole", None));

    let empty = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    let (text, error) = call_model(
        Reply::Drip(
            [HEAD, empty, empty, empty, HELLO, END]
                .map(str::to_owned)
                .to_vec(),
        ),
        limit.clone(),
    )
    .await;
    assert_eq!((text.as_str(), error), ("hello", None));

    let comment = ": queued\n\n";
    let (_, error) = call_model(
        Reply::Drip(
            [HEAD, comment, comment, comment, HELLO, END]
                .map(str::to_owned)
                .to_vec(),
        ),
        limit,
    )
    .await;
    assert!(
        error.is_some_and(|error| error.kind == ModelErrorKind::Stalled
            && error.message.contains("no data for 100 seconds"))
    );
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let (address, mut events, _tasks) = server(Reply::SendAndHang(format!("{HEAD}{HELLO}"))).await;
    let mut stream = model(&address, json!({})).stream(request()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().content, "hel");
    drop(stream);
    assert!(matches!(
        events.recv().await,
        Some(ServerEvent::Request { .. })
    ));
    let disconnected = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
    assert!(matches!(disconnected, Ok(Some(ServerEvent::Disconnected))));
}
