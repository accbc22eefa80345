//! Tests of the memory of messages of a WebSocket.

use std::time::Duration;

use harness::runtime::actor_context::{ActorContext, scope};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

use super::*;
use crate::guard::body_memory::BodyMemory;

const MIB: usize = 1 << 20;

/// Socket of `user` with its client.
async fn open(memory: &BodyMemory, user: &str) -> (DuplexStream, MeteredSocket<DuplexStream>) {
    let account = scope(ActorContext::user(user), async { memory.account(None) }).await;
    let (client, server) = duplex(4 * MIB);
    (client, MeteredSocket::new(server, Some(account)))
}

/// Sends and reads `bytes`.
async fn exchange(
    (client, server): &mut (DuplexStream, MeteredSocket<DuplexStream>),
    bytes: usize,
) -> io::Result<usize> {
    let sent = vec![0; bytes];
    client.write_all(&sent).await?;
    server.read_exact(&mut vec![0; bytes]).await
}

#[tokio::test(start_paused = true)]
async fn large_message_holds_memory_until_it_is_handled() {
    let memory = BodyMemory::new(16 * MIB);
    let mut first = open(&memory, "a").await;
    // The second read finds the message large.
    exchange(&mut first, MIB + 1).await.expect("received");
    exchange(&mut first, 1).await.expect("received");
    let mut second = open(&memory, "a").await;
    exchange(&mut second, MIB + 1).await.expect("received");
    let waiting = timeout(Duration::from_secs(10), exchange(&mut second, 1)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    first.1.message_handled();
    second.1.read_exact(&mut [0]).await.expect("received");
}

#[tokio::test(start_paused = true)]
async fn message_that_stops_ends_its_socket() {
    let memory = BodyMemory::new(16 * MIB);
    let mut socket = open(&memory, "a").await;
    exchange(&mut socket, MIB + 1).await.expect("received");
    exchange(&mut socket, 1).await.expect("received");
    tokio::time::advance(BODY_TIMEOUT + Duration::from_secs(1)).await;
    let late = exchange(&mut socket, 1).await.expect_err("too slow");
    assert!(
        late.to_string().contains("did not arrive in time"),
        "{late}"
    );
    // Small messages have no limit of time.
    let mut socket = open(&memory, "b").await;
    exchange(&mut socket, SMALL_TEXT).await.expect("received");
    tokio::time::advance(BODY_TIMEOUT * 2).await;
    socket.1.message_handled();
    exchange(&mut socket, SMALL_TEXT).await.expect("received");
}
