//! Local HTTP server for tests. Reads each request completely and answers from a list.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use deerflow_core::tasks::{TaskKind, Tasks};

/// Reads a request. Returns its head in lower case and its body, or `None` if the client
/// disconnects first.
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

/// Waits until the client has disconnected.
pub async fn wait_for_disconnect(socket: &mut TcpStream) {
    let mut bytes = Vec::new();
    while socket.read_buf(&mut bytes).await.unwrap_or(0) > 0 {}
}

/// Response of a [`TestServer`].
#[derive(Debug, Clone)]
pub enum TestResponse {
    /// Stream that sends every byte separately.
    Bytewise(String),
    /// Stream that sends its text in one piece.
    Stream(String),
    /// NDJSON stream.
    Lines(String),
    /// Stream that ends before its content length is reached.
    Broken(String),
    /// Status, additional header lines, and a JSON body.
    Json(u16, &'static str, Value),
}

impl TestResponse {
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

/// Server that sends its responses in order and repeats the last one.
#[derive(Debug)]
pub struct TestServer {
    /// Address of the server.
    pub address: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    _tasks: Tasks,
}

impl TestServer {
    /// Starts the server.
    pub async fn start(answers: impl IntoIterator<Item = TestResponse>) -> Self {
        Self::start_with(answers, |_| ()).await
    }

    /// Starts the server with a callback before each response. The callback gets the response's
    /// index.
    pub async fn start_with(
        answers: impl IntoIterator<Item = TestResponse>,
        before: impl Fn(usize) + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("test server");
        let address = format!("http://{}", listener.local_addr().expect("test server"));
        let answers: Vec<TestResponse> = answers.into_iter().collect();
        let (requests, tasks) = (Arc::<Mutex<Vec<_>>>::default(), Tasks::new());
        let log = Arc::clone(&requests);
        tasks.spawn(TaskKind::Service, "test server", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = read_request(&mut socket).await else {
                    continue;
                };
                let at = {
                    let mut log = log.lock();
                    log.push(request);
                    (log.len() - 1).min(answers.len() - 1)
                };
                before(at);
                let _ = socket.write_all(&answers[at].bytes()).await;
            }
        });
        Self {
            address,
            requests,
            _tasks: tasks,
        }
    }

    /// Returns the requests so far: heads in lower case, and bodies.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().clone()
    }
}
