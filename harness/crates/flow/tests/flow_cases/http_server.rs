//! Local HTTP server of tests: records each request and answers what a function decides.

use std::sync::Arc;

use deerflow_core::tasks::{TaskKind, Tasks};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// Method.
    pub(crate) method: String,
    /// URL without the port.
    pub(crate) url: String,
    /// Path.
    pub(crate) path: String,
    /// Headers with names in lower case.
    pub(crate) headers: Map<String, Value>,
    /// Body as text.
    pub(crate) body: String,
}

/// Answer of the server.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, header lines, and pieces that are written one by one.
    Whole(u16, Vec<String>, Vec<Vec<u8>>),
    /// Head and pieces, then the connection breaks before the body ends.
    Cut(Vec<String>, Vec<Vec<u8>>),
    /// Head and pieces, then nothing until the client disconnects.
    Stall(Vec<String>, Vec<Vec<u8>>),
    /// A piece that is repeated this number of times, or until the client disconnects.
    Repeat(Vec<String>, Vec<u8>, usize),
    /// The connection is closed without an answer.
    Disconnect,
    /// No answer until the client disconnects.
    Hang,
}

impl Reply {
    /// Creates an event stream of these pieces.
    pub(crate) fn sse<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Self {
        let pieces = pieces.into_iter().map(|piece| piece.as_bytes().to_vec());
        Self::Whole(200, vec![event_stream()], pieces.collect())
    }

    /// Creates a JSON answer.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        let header = "content-type: application/json".to_owned();
        Self::Whole(status, vec![header], vec![body.to_string().into_bytes()])
    }

    /// Creates a text answer.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        let header = "content-type: text/plain".to_owned();
        Self::Whole(status, vec![header], vec![body.as_bytes().to_vec()])
    }
}

/// Returns the header line of an event stream.
pub(crate) fn event_stream() -> String {
    "content-type: text/event-stream".to_owned()
}

/// Local HTTP server.
#[derive(Debug)]
pub(crate) struct HttpServer {
    /// Port on 127.0.0.1.
    pub(crate) port: u16,
    requests: Arc<Mutex<Vec<Recorded>>>,
    _tasks: Tasks,
}

impl HttpServer {
    /// Starts the server. `answer` gets each request and the number of requests before it.
    pub(crate) async fn start(
        answer: impl Fn(&Recorded, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, tasks) = (Arc::<Mutex<Vec<Recorded>>>::default(), Tasks::new());
        let log = requests.clone();
        tasks.spawn(TaskKind::Service, "http server", async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let Some(request) = read_request(&mut socket, port).await else {
                    continue;
                };
                let before = log.lock().len();
                let reply = answer(&request, before);
                log.lock().push(request);
                let _ = write_reply(&mut socket, reply).await;
            }
        });
        Self {
            port,
            requests,
            _tasks: tasks,
        }
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().clone()
    }
}

async fn read_request(socket: &mut TcpStream, port: u16) -> Option<Recorded> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Map<String, Value> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), Value::from(value.trim())))
        .collect();
    let header = |name: &str| headers.get(name).and_then(Value::as_str);
    let length: usize = header("content-length").map_or(0, |text| text.parse().unwrap());
    while bytes.len() < end + 4 + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let host = header("host")?.replace(&format!(":{port}"), "");
    Some(Recorded {
        method,
        url: format!("http://{host}{path}"),
        path,
        body: String::from_utf8(bytes[end + 4..].to_vec()).ok()?,
        headers,
    })
}

async fn write_reply(socket: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Disconnect => Ok(()),
        Reply::Hang => wait_for_disconnect(socket).await,
        Reply::Whole(status, headers, pieces) => {
            write_head(socket, status, &headers).await?;
            write_pieces(socket, &pieces).await?;
            socket.write_all(b"0\r\n\r\n").await
        }
        Reply::Cut(headers, pieces) => {
            write_head(socket, 200, &headers).await?;
            write_pieces(socket, &pieces).await
        }
        Reply::Stall(headers, pieces) => {
            write_head(socket, 200, &headers).await?;
            write_pieces(socket, &pieces).await?;
            wait_for_disconnect(socket).await
        }
        Reply::Repeat(headers, piece, times) => {
            write_head(socket, 200, &headers).await?;
            for _ in 0..times {
                write_pieces(socket, std::slice::from_ref(&piece)).await?;
            }
            socket.write_all(b"0\r\n\r\n").await
        }
    }
}

async fn write_head(
    socket: &mut TcpStream,
    status: u16,
    headers: &[String],
) -> std::io::Result<()> {
    let mut head =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ntransfer-encoding: chunked\r\n");
    for header in headers {
        head.push_str(&format!("{header}\r\n"));
    }
    socket.write_all(format!("{head}\r\n").as_bytes()).await
}

async fn write_pieces(socket: &mut TcpStream, pieces: &[Vec<u8>]) -> std::io::Result<()> {
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        socket
            .write_all(format!("{:x}\r\n", piece.len()).as_bytes())
            .await?;
        socket.write_all(piece).await?;
        socket.write_all(b"\r\n").await?;
        socket.flush().await?;
    }
    Ok(())
}

async fn wait_for_disconnect(socket: &mut TcpStream) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    while socket.read_buf(&mut bytes).await? > 0 {}
    Ok(())
}
