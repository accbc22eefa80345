//! A small HTTP server for tests that does as it is told, also what no server should.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::runtime::tasks::{TaskKind, Tasks};

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Method and path.
    pub(super) line: String,
    /// The head in small letters.
    pub(super) head: String,
    pub(super) body: String,
}

impl Asked {
    /// The body as JSON.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The method of the protocol.
    pub(super) fn method(&self) -> String {
        self.json()["method"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// What to do with a request.
pub(super) enum Answer {
    /// A status, more lines of the head, and a body.
    Say(u16, &'static str, String),
    /// These bytes, and the end of the connection.
    Raw(String),
    /// A stream of events that stays open.
    Stream(tokio::sync::mpsc::UnboundedReceiver<String>),
    /// Nothing, for ever.
    Hang,
}

/// A server that keeps what it was asked.
pub(super) struct Server {
    pub(super) base: String,
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
    _tasks: Tasks,
}

impl Server {
    pub(super) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (asked, tasks, answer) = (
            Arc::<Mutex<Vec<Asked>>>::default(),
            Tasks::new(),
            Arc::new(answer),
        );
        let (keep, connections) = (asked.clone(), tasks.clone());
        tasks.spawn(TaskKind::Service, "test server", async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let (keep, answer) = (keep.clone(), answer.clone());
                connections.spawn(TaskKind::Service, "connection", serve(socket, keep, answer));
            }
        });
        Self {
            base,
            asked,
            _tasks: tasks,
        }
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.asked
            .lock()
            .iter()
            .filter(|asked| asked.method() == method)
            .count()
    }
}

async fn serve(
    mut socket: TcpStream,
    keep: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<dyn Fn(&Asked) -> Answer + Send + Sync>,
) {
    while let Some(asked) = read(&mut socket).await {
        keep.lock().push(asked.clone());
        match answer(&asked) {
            Answer::Say(status, head, body) => {
                let text = format!(
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{head}\r\n{body}",
                    body.len()
                );
                let _gone = socket.write_all(text.as_bytes()).await;
            }
            Answer::Raw(text) => {
                let _gone = socket.write_all(text.as_bytes()).await;
                return;
            }
            Answer::Stream(mut events) => {
                let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                let _gone = socket.write_all(head.as_bytes()).await;
                while let Some(event) = events.recv().await {
                    let _gone = socket.write_all(event.as_bytes()).await;
                }
                return;
            }
            Answer::Hang => std::future::pending().await,
        }
    }
}

async fn read(socket: &mut TcpStream) -> Option<Asked> {
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
                return Some(Asked {
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

/// A result for a question.
pub(super) fn result(asked: &Asked, result: Value) -> String {
    json!({"jsonrpc": "2.0", "id": asked.json()["id"], "result": result}).to_string()
}

pub(super) fn greeting() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}})
}

/// What a good server over HTTP says.
pub(super) fn good(asked: &Asked) -> Answer {
    let said = match asked.method().as_str() {
        "initialize" => greeting(),
        "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": asked.json()["params"]["arguments"].to_string()}]})
        }
        _ if asked.line.starts_with("post") => return Answer::Say(202, "", String::new()),
        _ => return Answer::Say(405, "", String::new()),
    };
    Answer::Say(200, JSON, result(asked, said))
}
