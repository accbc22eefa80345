//! Scriptable HTTP server for tests, which can also send malformed responses.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::runtime::tasks::{TaskKind, Tasks};

/// Received request.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Method and path, in lower case.
    pub(super) line: String,
    /// Request head, in lower case.
    pub(super) head: String,
    pub(super) body: String,
}

impl Request {
    /// Returns the body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the JSON-RPC method.
    pub(super) fn method(&self) -> String {
        self.json()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Response to a request.
pub(super) enum Response {
    /// Status, additional header lines, and body.
    Status(u16, &'static str, String),
    /// Raw bytes; closes the connection afterwards.
    Raw(String),
    /// Event stream that stays open.
    Stream(tokio::sync::mpsc::UnboundedReceiver<String>),
    /// No response at all.
    Hang,
}

/// Server that records its requests.
pub(super) struct Server {
    pub(super) base: String,
    pub(super) requests: Arc<Mutex<Vec<Request>>>,
    _tasks: Tasks,
}

impl Server {
    pub(super) async fn start(
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (requests, tasks, answer) = (
            Arc::<Mutex<Vec<Request>>>::default(),
            Tasks::new(),
            Arc::new(answer),
        );
        let (log, connections) = (requests.clone(), tasks.clone());
        tasks.spawn(TaskKind::Service, "test server", async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (log, answer) = (log.clone(), answer.clone());
                connections.spawn(TaskKind::Service, "connection", serve(socket, log, answer));
            }
        });
        Self {
            base,
            requests,
            _tasks: tasks,
        }
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.requests
            .lock()
            .iter()
            .filter(|request| request.method() == method)
            .count()
    }
}

async fn serve(
    mut socket: TcpStream,
    log: Arc<Mutex<Vec<Request>>>,
    answer: Arc<dyn Fn(&Request) -> Response + Send + Sync>,
) {
    while let Some(request) = read(&mut socket).await {
        log.lock().push(request.clone());
        match answer(&request) {
            Response::Status(status, head, body) => {
                let text = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{head}\r\n{body}",
                    body.len()
                );
                let _closed = socket.write_all(text.as_bytes()).await;
            }
            Response::Raw(text) => {
                let _closed = socket.write_all(text.as_bytes()).await;
                return;
            }
            Response::Stream(mut events) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let _closed = socket.write_all(head.as_bytes()).await;
                while let Some(event) = events.recv().await {
                    let _closed = socket.write_all(event.as_bytes()).await;
                }
                return;
            }
            Response::Hang => std::future::pending().await,
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            if bytes.len() >= at + 4 + length {
                let line = head
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .replace(" http/1.1", "");
                return Some(Request {
                    line,
                    body: String::from_utf8_lossy(&bytes[at + 4..]).into_owned(),
                    head,
                });
            }
        }
        if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}

const JSON: &str = "content-type: application/json\r\n";

/// Returns the JSON-RPC reply to a request.
pub(super) fn result(request: &Request, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}).to_string()
}

pub(super) fn greeting() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}})
}

/// Returns the response of a correct server.
pub(super) fn valid_response(request: &Request) -> Response {
    let result_value = match request.method().as_str() {
        "initialize" => greeting(),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": request.json()["params"]["arguments"].to_string()}]})
        }
        _ if request.line.starts_with("post") => return Response::Status(202, "", String::new()),
        _ => return Response::Status(405, "", String::new()),
    };
    Response::Status(200, JSON, result(request, result_value))
}
