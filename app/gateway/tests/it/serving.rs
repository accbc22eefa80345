//! The server on a socket: disconnecting clients, and shutdown.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use deerflow_gateway::{ServeOptions, serve};
use futures_util::{StreamExt, stream};
use harness::runtime::tasks::{TaskKind, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::support::{Gateway, saying};

/// Opens a stream over a socket and reads its head and first event.
async fn open_stream(address: std::net::SocketAddr, thread: &str) -> (TcpStream, String) {
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    let body = saying("slow").to_string();
    let length = body.len();
    let request = format!(
        "POST /api/threads/{thread}/runs/stream HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    socket
        .write_all(request.as_bytes())
        .await
        .expect("a request");
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.contains("event: metadata") {
        let read = socket.read(&mut buffer).await.expect("an answer");
        assert!(read > 0, "closed early: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).expect("UTF-8"));
    }
    let line = text
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("content-location"))
        .expect("a place");
    let run = line.trim().rsplit('/').next().expect("an id").to_owned();
    (socket, run)
}

#[tokio::test]
async fn disconnect_cancels_the_run_and_shutdown_is_bounded() {
    let gateway = Gateway::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let tasks = Tasks::new();
    let options = ServeOptions {
        grace: Duration::from_secs(2),
        ..ServeOptions::default()
    };
    let server = tasks.spawn(
        TaskKind::Service,
        "server",
        serve(
            listener,
            gateway.router.clone(),
            gateway.shutdown.clone(),
            options,
        ),
    );

    let thread = gateway.thread().await;
    let (socket, run) = open_stream(address, &thread).await;
    drop(socket);
    assert_eq!(
        gateway.wait_for_status(&thread, &run).await["status"],
        "interrupted"
    );

    let other = gateway.thread().await;
    let (mut socket, _run) = open_stream(address, &other).await;
    let idle = TcpStream::connect(address).await.expect("a connection");
    gateway.shutdown.cancel();
    let mut rest = Vec::new();
    let _broken = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut rest))
        .await
        .expect("the stream is cut");
    let rest = String::from_utf8_lossy(&rest);
    assert!(
        !rest.ends_with("0\r\n\r\n") && !rest.contains("event: end"),
        "a clean end: {rest}"
    );
    tokio::time::timeout(Duration::from_secs(5), server)
        .await
        .expect("the server stops")
        .expect("a task")
        .expect("no panic")
        .expect("no error");
    drop(idle);
}

#[tokio::test]
async fn stalled_client_is_disconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let dropped = CancellationToken::new();
    let body = dropped.clone();
    let flood = async move || {
        let held = body.drop_guard();
        let chunks = stream::repeat(Bytes::from_static(&[b'x'; 65_536])).map(move |chunk| {
            let _held = &held;
            Ok::<_, Infallible>(chunk)
        });
        Body::from_stream(chunks)
    };
    let tasks = Tasks::new();
    let options = ServeOptions {
        write_timeout: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    let router = Router::new().route("/", get(flood));
    tasks.spawn(
        TaskKind::Service,
        "server",
        serve(listener, router, shutdown.clone(), options),
    );

    let mut socket = TcpStream::connect(address).await.expect("a connection");
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .expect("a request");
    tokio::time::timeout(Duration::from_secs(20), dropped.cancelled())
        .await
        .expect("the body is dropped");
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), socket.read_to_end(&mut rest))
        .await
        .expect("the connection is over");
    assert!(
        read.is_err() && !rest.ends_with(b"0\r\n\r\n"),
        "a clean end"
    );
    shutdown.cancel();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn unsent_response_data_is_limited() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let produced = Arc::new(AtomicUsize::new(0));
    let run_gauges = produced.clone();
    let dropped = CancellationToken::new();
    let body = dropped.clone();
    let flood = async move || {
        let held = body.drop_guard();
        let chunks = stream::repeat(Bytes::from_static(&[b'x'; 16_384])).map(move |chunk| {
            let _held = &held;
            run_gauges.fetch_add(chunk.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(chunk)
        });
        Body::from_stream(chunks)
    };
    let (tasks, shutdown) = (Tasks::new(), CancellationToken::new());
    let options = ServeOptions {
        write_timeout: Duration::from_millis(200),
        ..ServeOptions::default()
    };
    tasks.spawn(
        TaskKind::Service,
        "server",
        serve(
            listener,
            Router::new().route("/", get(flood)),
            shutdown.clone(),
            options,
        ),
    );

    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a small buffer");
    let mut socket = socket.connect(address).await.expect("a connection");
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .expect("a request");
    tokio::time::timeout(Duration::from_secs(20), dropped.cancelled())
        .await
        .expect("the body is dropped");
    let produced = produced.load(Ordering::Relaxed);
    assert!(
        produced < 1 << 20,
        "{produced} bytes were accepted that the client does not read"
    );
    shutdown.cancel();
}

#[test]
fn health_checks_are_answered_while_workers_are_blocked() {
    use std::io::{Read, Write};
    use std::sync::mpsc;

    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let (main, control) = (build(), build());
    let (address_of, address) = mpsc::channel();
    let (blocked, block) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let server = std::thread::spawn(move || {
        main.block_on(async {
            let tasks = Tasks::new().with_control(control.handle().clone());
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            address_of
                .send(listener.local_addr().expect("an address"))
                .expect("a test");
            tasks.spawn(TaskKind::Service, "blocks the only worker", async move {
                blocked.send(()).expect("a test");
                released.recv().expect("a test")
            });
            let router = Router::new()
                .route("/ok", get(async || "fine"))
                .route("/other", get(async || "later"));
            serve(
                listener,
                router,
                stop,
                ServeOptions {
                    tasks,
                    ..ServeOptions::default()
                },
            )
            .await
            .expect("no error");
        });
    });
    let address = address.recv().expect("an address");
    block.recv().expect("a blocked worker");
    let ask = |path: &str| {
        let mut socket = std::net::TcpStream::connect(address).expect("a connection");
        socket
            .write_all(
                format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            )
            .expect("a request");
        socket
    };
    let response = |mut socket: std::net::TcpStream| {
        let mut text = String::new();
        socket.read_to_string(&mut text).expect("an answer");
        text
    };
    let other = ask("/other");
    let probed = response(ask("/ok"));
    assert!(
        probed.starts_with("HTTP/1.1 200") && probed.ends_with("fine"),
        "{probed}"
    );
    release.send(()).expect("a worker");
    assert!(response(other).ends_with("later"));
    shutdown.cancel();
    server.join().expect("no panic");
}
