//! What clients may write, and what they do not read.

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

/// A link whose output is read at the other end, with room for so many bytes there.
fn link(input: &[u8], room: usize) -> (Link<&[u8]>, DuplexStream, CancellationToken) {
    let (near, far) = duplex(room);
    let over = CancellationToken::new();
    let (link, _) = open(input, near, &over, &Tasks::new());
    (link, far, over)
}

#[tokio::test]
async fn lines_end_where_they_end_and_the_last_one_needs_its_end() {
    let mut lines = Lines::new(&b"one\n\ntwo\r\nthr"[..]);
    let mut told = Vec::new();
    while let Some(line) = lines.next().await.unwrap() {
        told.push(line);
    }
    let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
    assert_eq!(told, [whole("one"), whole(""), whole("two\r")]);
}

#[tokio::test]
async fn a_line_without_measure_is_dropped_and_the_next_one_is_read() {
    let (longest, longer) = (vec![b'x'; LONGEST_LINE], vec![b'x'; LONGEST_LINE + 1]);
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
    let mut lines = Lines::new(&text[..]);
    assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(longest)));
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
    assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong));
    assert_eq!(
        lines.next().await.unwrap(),
        Some(Line::Whole(b"next".to_vec()))
    );
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_the_next_one_is_heard() {
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
    let mut told = String::new();
    far.read_to_string(&mut told).await.unwrap();
    assert!(
        told.contains("-32700") && told.lines().count() == 1,
        "{told}"
    );
}

#[tokio::test]
async fn who_reads_no_answers_is_not_read_any_further() {
    let (mut link, mut far, _) = link(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", 1);
    let mut sends: Vec<BoxFuture<'static, Result<(), Closed>>> = Vec::new();
    for id in 0..=MOST_WAITING as i64 {
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
async fn an_output_that_is_closed_is_the_end() {
    let (mut link, far, over) = link(b"", 1);
    drop(far);
    assert_eq!(link.send(answer(1)).await, Err(Closed));
    over.cancelled().await;
    assert!(link.receive().await.is_none());
}
