//! The adapter against a real local server that speaks raw HTTP.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;

use super::super::test_server::{read_request, until_gone};
use super::*;
use crate::clock::SystemClock;
use crate::messages::{Message, MessageAccumulator};
use crate::models::openai::{ChatCompletions, Dialect};
use crate::runtime::tasks::{TaskKind, Tasks};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
const HELLO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// What the server does after it has read a request.
#[derive(Clone)]
enum Reply {
    /// Writes this and closes.
    Say(String),
    /// Writes this and stays silent until the client goes.
    SayAndHang(String),
    /// Writes these pieces, each a minute after the one before, and closes.
    Drip(Vec<String>),
}

/// A server that answers every request alike; gives the requests it read, and a mark whenever a client has gone.
async fn server(reply: Reply) -> (String, mpsc::UnboundedReceiver<Heard>, Tasks) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (tell, heard) = mpsc::unbounded_channel();
    let tasks = Tasks::new();
    tasks.spawn(TaskKind::Service, "test server", async move {
        while let Ok((socket, _)) = listener.accept().await {
            serve(socket, &reply, &tell).await;
        }
    });
    (address, heard, tasks)
}

#[derive(Debug)]
enum Heard {
    Request { head: String, body: Value },
    Gone,
}

async fn serve(mut socket: TcpStream, reply: &Reply, tell: &mpsc::UnboundedSender<Heard>) {
    let Some((head, body)) = read_request(&mut socket).await else {
        return;
    };
    let _ = tell.send(Heard::Request { head, body });
    match reply {
        Reply::Say(text) => {
            let _ = socket.write_all(text.as_bytes()).await;
        }
        Reply::SayAndHang(text) => {
            let _ = socket.write_all(text.as_bytes()).await;
            until_gone(&mut socket).await;
            let _ = tell.send(Heard::Gone);
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

/// The text that came, and the error that ended it.
async fn asked(reply: Reply, more: Value) -> (String, Option<ModelError>) {
    let (address, _heard, _tasks) = server(reply).await;
    let mut sum = MessageAccumulator::new("m1");
    let mut stream = match model(&address, more).stream(request()).await {
        Ok(stream) => stream,
        Err(error) => return (String::new(), Some(error)),
    };
    let mut fault = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => sum.push(&chunk),
            Err(error) => fault = Some(error),
        }
    }
    (sum.finish().content.text(), fault)
}

fn refusal_reply(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Say(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ))
}

#[tokio::test]
async fn a_stream_is_asked_for_and_read() {
    let (address, mut heard, _tasks) = server(Reply::Say(format!("{HEAD}{HELLO}{END}"))).await;
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
    let Some(Heard::Request { head, body }) = heard.recv().await else {
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
async fn an_answer_that_is_not_streamed_is_read_too() {
    let body = r#"{"model":"g","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let reply = refusal_reply("200 OK", "content-type: application/json\r\n", body);
    assert_eq!(asked(reply, json!({})).await, ("whole".to_owned(), None));
    let empty = refusal_reply(
        "200 OK",
        "content-type: application/json\r\n",
        r#"{"choices":[]}"#,
    );
    let (_, error) = asked(empty, json!({})).await;
    assert!(error.is_some_and(
        |error| error.kind == ModelErrorKind::Transient && error.message.contains("no choices")
    ));
}

#[tokio::test]
async fn broken_streams_give_what_came_and_then_the_fault() {
    let garbled = format!("{HEAD}{HELLO}data: {{nope\n\n");
    let refused = format!(
        "{HEAD}{HELLO}data: {{\"error\":{{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}}}\n\n"
    );
    for (stream, kind, words) in [
        (format!("{HEAD}{HELLO}"), ModelErrorKind::Transient, "cut"),
        (garbled, ModelErrorKind::Transient, "not valid"),
        (refused, ModelErrorKind::Busy, "Overloaded"),
    ] {
        let (text, error) = asked(Reply::Say(stream), json!({})).await;
        let error = error.unwrap();
        assert_eq!((text.as_str(), error.kind), ("hello", kind));
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn an_endless_stream_is_left() {
    let (address, _heard, _tasks) =
        server(Reply::Say(format!("{HEAD}{}{END}", HELLO.repeat(100)))).await;
    let mut model = model(&address, json!({}));
    Arc::get_mut(&mut model.asker)
        .unwrap()
        .endpoint
        .limits
        .streamed = 1000;
    let items: Vec<_> = match model.stream(request()).await {
        Ok(stream) => stream.collect().await,
        Err(error) => vec![Err(error)],
    };
    let error = items.into_iter().find_map(Result::err).unwrap();
    assert!(
        error.kind == ModelErrorKind::Transient && error.message.contains("longer than"),
        "{error}"
    );
}

#[tokio::test]
async fn silence_ends_a_call_before_and_within_the_stream() {
    let (_, error) = asked(Reply::SayAndHang(String::new()), json!({"timeout": 0.05})).await;
    assert_eq!(error.map(|error| error.kind), Some(ModelErrorKind::Stalled));
    let stalled = Reply::SayAndHang(format!("{HEAD}{HELLO}: still here\n\n"));
    let (text, error) = asked(stalled, json!({"stream_chunk_timeout": 0.05})).await;
    assert_eq!(
        (text.as_str(), error.map(|error| error.kind)),
        ("hello", Some(ModelErrorKind::Stalled))
    );
}

const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

#[tokio::test]
async fn a_complete_answer_stands_however_the_connection_ends() {
    // A length that is not reached, and a chunk that is cut, are errors of the transport.
    let short = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{HELLO}{FINISH}"
    );
    let half = format!("{short}data: {{\"choices\":[],\"usa");
    for stream in [short, half] {
        assert_eq!(
            asked(Reply::Say(stream), json!({})).await,
            ("hello".to_owned(), None)
        );
    }
    let unfinished = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{HELLO}"
    );
    let (text, error) = asked(Reply::Say(unfinished), json!({})).await;
    assert_eq!(
        (text.as_str(), error.map(|error| error.kind)),
        ("hello", Some(ModelErrorKind::Transient))
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_kept_open_after_the_answer_is_left_soon() {
    let begun = Instant::now();
    assert_eq!(
        asked(
            Reply::SayAndHang(format!("{HEAD}{HELLO}{FINISH}")),
            json!({})
        )
        .await,
        ("hello".to_owned(), None)
    );
    assert!(
        begun.elapsed() < Duration::from_secs(6),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn patience_is_renewed_by_everything_that_comes_but_comments() {
    let limit = json!({"stream_chunk_timeout": 100});
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let body = [
        head,
        "{\"choices\":[{\"index\":0,",
        "\"message\":{\"content\":\"whole\"},",
        "\"finish_reason\":\"stop\"}]}",
    ];
    let (text, error) = asked(Reply::Drip(body.map(str::to_owned).to_vec()), limit.clone()).await;
    assert_eq!((text.as_str(), error), ("whole", None));

    let empty = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n";
    let (text, error) = asked(
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
    let (_, error) = asked(
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
    let (address, mut heard, _tasks) = server(Reply::SayAndHang(format!("{HEAD}{HELLO}"))).await;
    let mut stream = model(&address, json!({})).stream(request()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().content, "hel");
    drop(stream);
    assert!(matches!(heard.recv().await, Some(Heard::Request { .. })));
    let gone = tokio::time::timeout(Duration::from_secs(60), heard.recv()).await;
    assert!(matches!(gone, Ok(Some(Heard::Gone))));
}

#[tokio::test]
async fn refusals_have_a_class_a_status_and_a_wait_and_never_the_key() {
    let error_body = |code: &str, message: &str| {
        json!({"error": {"message": message, "type": code, "code": null}}).to_string()
    };
    let table = [
        (
            "400 Bad",
            "",
            error_body("invalid_request_error", "too long"),
            ModelErrorKind::BadRequest,
            None,
            "too long",
        ),
        (
            "401 No",
            "",
            error_body("authentication_error", "bad key sk-canary"),
            ModelErrorKind::Auth,
            None,
            "bad key ***",
        ),
        (
            "429 Slow",
            "retry-after: 2\r\n",
            error_body("rate_limit_error", "slow"),
            ModelErrorKind::Transient,
            Some(2000),
            "slow",
        ),
        (
            "429 Slow",
            "retry-after-ms: 40\r\n",
            error_body("insufficient_quota", "out"),
            ModelErrorKind::Quota,
            Some(40),
            "out",
        ),
        (
            "429 Slow",
            "retry-after: 3\r\n",
            error_body("limit", "quota for this minute"),
            ModelErrorKind::Transient,
            Some(3000),
            "minute",
        ),
        (
            "307 Moved",
            "location: /elsewhere\r\n",
            String::new(),
            ModelErrorKind::Config,
            None,
            "HTTP status 307",
        ),
        (
            "500 Oops",
            "",
            "<html>oops</html>".to_owned(),
            ModelErrorKind::Transient,
            None,
            "oops",
        ),
        (
            "503 Busy",
            "",
            String::new(),
            ModelErrorKind::Transient,
            None,
            "HTTP status 503",
        ),
    ];
    for (status, headers, body, kind, wait, words) in table {
        let (_, error) = asked(refusal_reply(status, headers, &body), json!({})).await;
        let error = error.unwrap();
        assert_eq!(
            (error.kind, error.retry_after.map(|wait| wait.as_millis())),
            (kind, wait),
            "{status}"
        );
        assert_eq!(
            error.status.map(|code| code.to_string()).as_deref(),
            status.get(..3)
        );
        assert!(
            error.to_string().contains(words) && error.to_string().contains("\"entry\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_is_a_web_site_is_told() {
    // Held for the whole test without listening, so that nobody else listens there.
    let held = TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = held.local_addr().unwrap();
    let error = model(&format!("http://{closed}/v1?token=sk-other"), json!({}))
        .stream(request())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ModelErrorKind::Transient);
    assert!(
        error.message.contains("connect") && !error.message.contains("sk-other"),
        "{error}"
    );
    let (_, error) = asked(
        refusal_reply("200 OK", "content-type: text/html\r\n", "<html>"),
        json!({}),
    )
    .await;
    assert!(error.is_some_and(
        |error| error.kind == ModelErrorKind::Config && error.message.contains("base_url")
    ));
}
