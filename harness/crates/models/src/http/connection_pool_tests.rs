//! The pool against servers that a test controls byte by byte.

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::super::test_server::read_request;
use super::*;

/// Response without the end of its body.
const UNFINISHED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Server that a test controls: each accepted connection, in order.
async fn server() -> (String, TcpListener, Arc<ConnectionPool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    (server, listener, Arc::new(ConnectionPool::new().unwrap()))
}

fn request() -> Request<BodyChunks> {
    let chunks = ["{\"a\"", ":1}"].map(|chunk| Bytes::from_static(chunk.as_bytes()));
    let mut request = Request::new(BodyChunks::from(chunks.to_vec()));
    *request.method_mut() = hyper::Method::POST;
    *request.uri_mut() = "/v1".parse().unwrap();
    request
}

async fn body(mut response: PooledResponse) -> String {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.unwrap() {
        body.extend_from_slice(&bytes);
    }
    String::from_utf8(body).unwrap()
}

/// Answers the requests of `socket`. Sends the head of each request.
async fn answer(mut socket: TcpStream, text: &str, heads: mpsc::UnboundedSender<String>) {
    while let Some((head, _)) = read_request(&mut socket).await {
        heads.send(head).unwrap();
        socket.write_all(text.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn connection_is_used_again_after_a_complete_response() {
    let (server, listener, pool) = server().await;
    let (heads, mut received) = mpsc::unbounded_channel();
    let serving = async {
        let (socket, _) = listener.accept().await.unwrap();
        answer(socket, WHOLE, heads).await;
    };
    let calling = async {
        for _ in 0..3 {
            assert_eq!(
                body(pool.send(&server, request()).await.unwrap()).await,
                "ok"
            );
        }
        drop(pool);
    };
    tokio::join!(serving, calling);
    for _ in 0..3 {
        let head = received.recv().await.unwrap();
        assert!(
            head.starts_with("post /v1 http/1.1\r\ncontent-length: 7"),
            "{head}"
        );
    }
    assert_eq!(received.recv().await, None);
}

#[tokio::test]
async fn connection_is_used_again_if_the_rest_has_arrived() {
    let (server, listener, pool) = server().await;
    let (heads, mut received) = mpsc::unbounded_channel();
    let serving = async {
        let (socket, _) = listener.accept().await.unwrap();
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        answer(socket, chunked, heads).await;
    };
    let calling = async {
        for _ in 0..2 {
            let mut response = pool.send(&server, request()).await.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
        }
        drop(pool);
    };
    tokio::join!(serving, calling);
    assert!(received.recv().await.is_some() && received.recv().await.is_some());
}

#[tokio::test]
async fn late_formal_end_allows_another_request() {
    let (server, listener, pool) = server().await;
    let (dropped, mut may_end) = mpsc::unbounded_channel();
    let (ended, mut may_continue) = mpsc::unbounded_channel();
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            read_request(&mut socket).await.unwrap();
            socket.write_all(UNFINISHED.as_bytes()).await.unwrap();
            may_end.recv().await.unwrap();
            socket.write_all(b"0\r\n\r\n").await.unwrap();
            ended.send(()).unwrap();
        }
    };
    let calling = async {
        for _ in 0..2 {
            let mut response = pool.send(&server, request()).await.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
            response.complete();
            drop(response);
            dropped.send(()).unwrap();
            may_continue.recv().await.unwrap();
            // The runtime notices what the socket has received.
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(serving, calling);
}

#[tokio::test]
async fn response_without_its_end_is_not_used_again() {
    let (server, listener, pool) = server().await;
    let serving = async {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            socket.write_all(UNFINISHED.as_bytes()).await.unwrap();
        }
    };
    let calling = async {
        for _ in 0..2 {
            let mut response = pool.send(&server, request()).await.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
            response.complete();
        }
    };
    tokio::join!(serving, calling);
}

#[tokio::test]
async fn request_on_a_closed_connection_is_sent_on_another() {
    let (server, listener, pool) = server().await;
    let serving = async {
        for _ in 0..3 {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            socket.write_all(WHOLE.as_bytes()).await.unwrap();
        }
    };
    let calling = async {
        for _ in 0..3 {
            assert_eq!(
                body(pool.send(&server, request()).await.unwrap()).await,
                "ok"
            );
        }
    };
    tokio::join!(serving, calling);
}

#[tokio::test]
async fn dropped_response_closes_its_connection() {
    let (server, listener, pool) = server().await;
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        let half = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
        socket.write_all(half.as_bytes()).await.unwrap();
        assert_eq!(read_request(&mut socket).await, None);
    };
    let calling = async {
        let mut response = pool.send(&server, request()).await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "ok");
        drop(response);
        assert!(pool.take(&server).is_none());
    };
    tokio::join!(serving, calling);
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_after_their_timeout() {
    let (server, listener, pool) = server().await;
    let (heads, _received) = mpsc::unbounded_channel();
    let serving = async {
        let (socket, _) = listener.accept().await.unwrap();
        // Ends when the client closes the connection.
        answer(socket, WHOLE, heads).await;
    };
    let calling = async {
        assert_eq!(
            body(pool.send(&server, request()).await.unwrap()).await,
            "ok"
        );
        assert_eq!(pool.idle.lock().len(), 1);
    };
    tokio::join!(serving, calling);
    assert!(pool.idle.lock().is_empty());
}

#[tokio::test]
async fn refused_connection_is_reported() {
    let (server, listener, pool) = server().await;
    drop(listener);
    let error = pool.send(&server, request()).await.unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert!(!error.invalid_request);
}
