//! A real server on the loopback for tests: it reads requests whole and answers them from a list.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::runtime::tasks::{TaskKind, Tasks};

/// The head in small letters, and the body, once all of it is there; none when the client goes before.
pub(crate) async fn read_request(socket: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some((head.to_lowercase(), body));
        }
    }
}

/// Waits until the client has gone.
pub(crate) async fn until_gone(socket: &mut TcpStream) {
    let mut bytes = Vec::new();
    while socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
}

/// One answer of a [`TestServer`].
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// A stream in which every byte travels alone.
    Bytewise(String),
    /// A stream that comes at once.
    Stream(String),
    /// A stream of lines.
    Lines(String),
    /// A stream that breaks off in the middle of what it promised.
    Broken(String),
    /// A status, further header lines, and a JSON body.
    Json(u16, &'static str, Value),
}

impl Answer {
    fn bytes(&self) -> Vec<u8> {
        const HEAD: &str =
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n";
        match self {
            Self::Bytewise(text) => {
                let mut bytes = format!("{HEAD}transfer-encoding: chunked\r\n\r\n").into_bytes();
                for byte in text.bytes() {
                    bytes.extend_from_slice(&[b'1', b'\r', b'\n', byte, b'\r', b'\n']);
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
                bytes
            }
            Self::Stream(text) => {
                format!("{HEAD}content-length: {}\r\n\r\n{text}", text.len()).into_bytes()
            }
            Self::Lines(text) => {
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/x-ndjson\r\n";
                format!("{head}content-length: {}\r\n\r\n{text}", text.len()).into_bytes()
            }
            Self::Broken(text) => {
                format!("{HEAD}content-length: {}\r\n\r\n{text}", text.len() + 9).into_bytes()
            }
            Self::Json(status, headers, body) => {
                let body = body.to_string();
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}"
                );
                format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
            }
        }
    }
}

/// A server that gives its answers one after the other, the last for ever.
#[derive(Debug)]
pub(crate) struct TestServer {
    /// Where it listens.
    pub(crate) address: String,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
    _tasks: Tasks,
}

impl TestServer {
    /// Begins to listen.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start_with(answers, |_| ()).await
    }

    /// The same, where something happens before an answer is given: it is told which.
    pub(crate) async fn start_with(
        answers: impl IntoIterator<Item = Answer>,
        before: impl Fn(usize) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answers: Vec<Answer> = answers.into_iter().collect();
        let (heard, tasks) = (Arc::<Mutex<Vec<_>>>::default(), Tasks::new());
        let told = Arc::clone(&heard);
        tasks.spawn(TaskKind::Service, "test server", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = read_request(&mut socket).await else {
                    continue;
                };
                let at = {
                    let mut told = told.lock();
                    told.push(request);
                    (told.len() - 1).min(answers.len() - 1)
                };
                before(at);
                let _ = socket.write_all(&answers[at].bytes()).await;
            }
        });
        Self {
            address,
            heard,
            _tasks: tasks,
        }
    }

    /// The requests so far: heads in small letters, and bodies.
    pub(crate) fn heard(&self) -> Vec<(String, Value)> {
        self.heard.lock().clone()
    }
}
