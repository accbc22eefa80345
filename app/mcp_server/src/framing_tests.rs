//! Tests of the line transport with malformed, long and unread lines.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{EmptyResult, RequestId, ServerResult};
use tokio::io::{AsyncReadExt, DuplexStream, duplex};

use super::*;

fn answer(id: i64) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(
        ServerResult::EmptyResult(EmptyResult {}),
        RequestId::Number(id),
    )
}

/// Opens a transport whose output pipe has the given capacity in bytes.
fn link(input: &[u8], room: usize) -> (ClientTransport<&[u8]>, DuplexStream, CancellationToken) {
    let (near, far) = duplex(room);
    let over = CancellationToken::new();
    let (link, _) = open(input, near, &over, &Tasks::new());
    (link, far, over)
}

#[tokio::test]
async fn lines_split_at_line_feed_and_partial_last_is_ignored() {
    let mut lines = LineReader::new(&b"one\n\ntwo\r\nthr"[..]);
    let mut received = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        received.push(line);
    }
    let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
    assert_eq!(received, [whole("one"), whole(""), whole("two\r")]);
}

#[tokio::test]
async fn overlong_line_is_dropped_and_next_is_read() {
    let (longest, longer) = (vec![b'x'; MAX_LINE_BYTES], vec![b'x'; MAX_LINE_BYTES + 1]);
    let text = [
        &longest[..],
        b"\n",
        &longer[..],
        b"\n",
        &longer[..],
        &longer[..],
        b"\nnext\n",
    ]
    .concat();
    let mut lines = LineReader::new(&text[..]);
    assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(longest)));
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
    assert_eq!(
        lines.next().await.unwrap(),
        Some(Line::Whole(b"next".to_vec()))
    );
}

#[tokio::test]
async fn invalid_message_gets_error_and_next_is_read() {
    let (mut link, mut far, over) = link(
        b"{broken\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n",
        1 << 16,
    );
    assert!(matches!(
        link.receive().await,
        Some(ClientJsonRpcMessage::Request(_))
    ));
    assert!(!over.is_cancelled());
    assert!(link.receive().await.is_none());
    assert!(over.is_cancelled(), "the end of the input is the end");
    link.close().await.unwrap();
    drop(link);
    let mut received = String::new();
    far.read_to_string(&mut received).await.unwrap();
    assert!(
        received.contains("-32700") && received.lines().count() == 1,
        "{received}"
    );
}

#[tokio::test]
async fn unread_output_pauses_input() {
    let (mut link, mut far, _) = link(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", 1);
    let mut sends: Vec<BoxFuture<'static, Result<(), Closed>>> = Vec::new();
    for id in 0..=MAX_QUEUED as i64 {
        let mut send = link.send(answer(id)).boxed();
        assert!(futures_util::poll!(&mut send).is_pending());
        sends.push(send);
    }
    tokio::task::yield_now().await;
    assert!(futures_util::poll!(Box::pin(link.receive())).is_pending());
    let mut byte = [0];
    let mut lines = 0;
    while lines < 2 {
        far.read_exact(&mut byte).await.unwrap();
        lines += usize::from(byte == [b'\n']);
    }
    assert!(link.receive().await.is_some());
}

#[tokio::test]
async fn closed_output_ends_transport() {
    let (mut link, far, over) = link(b"", 1);
    drop(far);
    assert_eq!(link.send(answer(1)).await, Err(Closed));
    over.cancelled().await;
    assert!(link.receive().await.is_none());
}
