//! Tests of partitions, delays and lost responses of the proxy.

use super::*;

/// Starts an echo server.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            connections.spawn(async move {
                let (mut from, mut to) = socket.into_split();
                _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    (address, tasks)
}

async fn proxied() -> (FaultProxy, TcpStream, JoinSet<()>) {
    let (address, tasks) = echo().await;
    let proxy = FaultProxy::start(address, 1).await.expect("a port");
    let stream = TcpStream::connect(proxy.address())
        .await
        .expect("connected");
    (proxy, stream, tasks)
}

async fn read_text(stream: &mut TcpStream, length: usize) -> io::Result<String> {
    let mut received = vec![0; length];
    stream.read_exact(&mut received).await?;
    Ok(String::from_utf8_lossy(&received).into_owned())
}

#[tokio::test]
async fn partition_delivers_held_bytes_when_it_ends() {
    let (proxy, mut stream, _server) = proxied().await;
    stream.write_all(b"before").await.expect("sent");
    assert_eq!(
        read_text(&mut stream, 6).await.expect("an answer"),
        "before"
    );
    proxy.set(Faults {
        partitioned: true,
        ..Faults::default()
    });
    stream
        .write_all(b"during")
        .await
        .expect("sent without an error");
    let early = tokio::time::timeout(Duration::from_millis(50), read_text(&mut stream, 6)).await;
    assert!(early.is_err(), "{early:?}");
    proxy.set(Faults::default());
    assert_eq!(
        read_text(&mut stream, 6).await.expect("an answer"),
        "during"
    );
}

#[tokio::test]
async fn lost_answer_resets_its_connection_and_is_counted() {
    let (proxy, mut stream, _server) = proxied().await;
    proxy.set(Faults {
        lost_answers: 1_000,
        ..Faults::default()
    });
    stream.write_all(b"asked").await.expect("sent");
    assert!(read_text(&mut stream, 5).await.is_err());
    assert_eq!(proxy.lost(), 1);
}

#[tokio::test]
async fn delayed_pieces_arrive_complete_and_reset_closes_all() {
    let (proxy, mut stream, _server) = proxied().await;
    proxy.set(Faults {
        delay: Duration::from_millis(2),
        slice: 3,
        ..Faults::default()
    });
    let started = std::time::Instant::now();
    stream.write_all(b"in small pieces").await.expect("sent");
    assert_eq!(
        read_text(&mut stream, 15).await.expect("an answer"),
        "in small pieces"
    );
    assert!(
        started.elapsed() >= Duration::from_millis(10),
        "five pieces of 2 ms"
    );
    proxy.reset();
    assert!(read_text(&mut stream, 1).await.is_err());
    let mut another = TcpStream::connect(proxy.address())
        .await
        .expect("connected");
    another.write_all(b"on").await.expect("sent");
    assert_eq!(read_text(&mut another, 2).await.expect("an answer"), "on");
}
