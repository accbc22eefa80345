//! Requests as bytes on a socket: targets and hosts as a proxy might send them, and unwanted
//! bodies.

use std::net::SocketAddr;

use deerflow_gateway::{ServeOptions, serve};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::Gateway;

async fn served(gateway: &Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = serve(
        listener,
        gateway.router.clone(),
        gateway.shutdown.clone(),
        ServeOptions::default(),
    );
    let _detached = Tasks::new().spawn(TaskKind::Service, "server", serving);
    address
}

/// Returns the status of the response to these bytes.
async fn status(address: SocketAddr, bytes: &str) -> u16 {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket.write_all(bytes.as_bytes()).await.expect("a request");
    status_from(&mut socket).await
}

async fn status_from(socket: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    socket.read_exact(&mut head).await.expect("a status line");
    std::str::from_utf8(&head[9..])
        .expect("UTF-8")
        .parse()
        .expect("a status")
}

#[tokio::test]
async fn host_is_checked_by_target_and_header() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    for (head, expected) in [
        ("GET /ok HTTP/1.1\r\nHost: localhost", 200),
        ("GET /ok HTTP/1.1", 400),
        ("GET http://localhost/ok HTTP/1.1", 400),
        ("GET /ok HTTP/1.0", 200),
        ("GET /ok HTTP/1.1\r\nHost: evil.test", 403),
        ("GET /ok HTTP/1.1\r\nHost: a b", 400),
        (
            "GET /ok HTTP/1.1\r\nHost: localhost\r\nHost: localhost",
            400,
        ),
        ("GET http://localhost/ok HTTP/1.1\r\nHost: localhost", 200),
        (
            "GET http://127.0.0.1:9/ok HTTP/1.1\r\nHost: 127.0.0.1:9",
            200,
        ),
        ("GET http://evil.test/ok HTTP/1.1\r\nHost: localhost", 400),
        ("GET http://localhost/ok HTTP/1.1\r\nHost: evil.test", 400),
        ("GET http://evil.test/ok HTTP/1.1\r\nHost: evil.test", 403),
        ("GET http://evil.test/ok HTTP/1.0", 403),
        (
            "GET http://evil.test/api/models HTTP/1.1\r\nHost: localhost",
            400,
        ),
        ("CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443", 403),
    ] {
        assert_eq!(
            status(address, &format!("{head}\r\n\r\n")).await,
            expected,
            "{head}"
        );
    }
    gateway.shutdown.cancel();
}

#[tokio::test]
async fn too_large_body_is_rejected_at_once() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    for path in ["/threads", "/api/threads", "/api/threads/t/uploads"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 10000000000\r\n\r\n{{"
        );
        assert_eq!(status(address, &head).await, 413, "{path}");
    }
    gateway.shutdown.cancel();
}

#[tokio::test]
async fn client_that_is_still_writing_receives_the_error() {
    let gateway = Gateway::new();
    let address = served(&gateway).await;
    let piece = vec![b'x'; 1 << 20];
    for (framing, expected) in [
        (format!("Content-Length: {}", 32 << 20), 413),
        ("Transfer-Encoding: chunked".to_owned(), 413),
        (
            format!("Content-Encoding: gzip\r\nContent-Length: {}", 32 << 20),
            415,
        ),
        (
            format!("X-Api-Key: nope\r\nContent-Length: {}", 32 << 20),
            401,
        ),
    ] {
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        let head = format!("POST /threads HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n\r\n");
        socket.write_all(head.as_bytes()).await.expect("a head");
        for _ in 0..32 {
            if framing.starts_with("Transfer") {
                socket.write_all(b"100000\r\n").await.expect("a size");
                socket.write_all(&piece).await.expect("a piece");
                socket.write_all(b"\r\n").await.expect("an end");
            } else {
                socket.write_all(&piece).await.expect("a piece");
            }
        }
        assert_eq!(status_from(&mut socket).await, expected, "{framing}");
    }
    gateway.shutdown.cancel();
}
