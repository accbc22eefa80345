//! End of an event stream, and streams with no or too many ready events.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use harness::ids::RunId;
use harness::runtime::stream_bridge::{EventId, Gap, StreamEvent, StreamItem, TerminalKind};
use tokio_util::sync::CancellationToken;

use super::{EventFilter, EventStream};
use crate::dialect::Dialect;
use crate::sse::Style;

const STYLE: Style = Style {
    dialect: Dialect::DeerFlow,
    ids: true,
};

fn event(seq: u64, name: &'static str, data: impl Into<Bytes>) -> StreamItem {
    StreamItem::Event(StreamEvent {
        id: EventId { seq, attempt: 1 },
        event: name.into(),
        data: data.into().into(),
    })
}

fn of(items: Vec<StreamItem>) -> EventStream {
    EventStream::new(stream::iter(items).boxed(), STYLE, CancellationToken::new())
}

async fn text(stream: EventStream) -> String {
    let chunks: Vec<Bytes> = stream
        .filter_map(|chunk| async { chunk.ok() })
        .collect()
        .await;
    String::from_utf8(chunks.concat()).expect("UTF-8")
}

#[tokio::test]
async fn ready_events_are_sent_in_one_chunk_with_the_end() {
    let mut stream = of(vec![
        event(1, "metadata", "1"),
        event(2, "values", "2"),
        StreamItem::End(TerminalKind::End),
    ]);
    let chunk = stream.next().await.expect("a chunk").expect("no error");
    assert_eq!(chunk, "event: metadata\ndata: 1\nid: 1-1\n\nevent: values\ndata: 2\nid: 2-1\n\nevent: end\ndata: null\n\n".as_bytes());
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shutdown_interrupts_the_pause_of_a_new_chat() {
    let shutdown = CancellationToken::new();
    let items = stream::iter([event(1, "metadata", "1"), event(2, "values", "2")])
        .chain(stream::pending())
        .boxed();
    let mut stream = EventStream::new(items, STYLE, shutdown.clone()).with_opening_pause();
    assert_eq!(
        stream.next().await.expect("a chunk").expect("no error"),
        "event: metadata\ndata: 1\nid: 1-1\n\n".as_bytes()
    );
    let before = tokio::time::Instant::now();
    shutdown.cancel();
    assert!(stream.next().await.expect("a cut").is_err());
    assert_eq!(before.elapsed(), std::time::Duration::ZERO);
}

#[tokio::test]
async fn gap_ends_the_stream_without_an_end_event() {
    let id = |seq| EventId { seq, attempt: 1 };
    let gap = Gap::new(
        &RunId::parse("r").expect("an id"),
        Some(id(1)),
        id(5),
        id(9),
    );
    let text = text(of(vec![StreamItem::Gap(gap)])).await;
    assert!(
        text.starts_with("event: gap\n") && !text.contains("event: end"),
        "{text}"
    );
}

#[tokio::test]
async fn end_of_a_run_follows_its_gap() {
    let id = |seq| EventId { seq, attempt: 1 };
    let gap = Gap::new(
        &RunId::parse("r").expect("an id"),
        Some(id(1)),
        id(2),
        id(2),
    );
    let text = text(of(vec![
        StreamItem::Gap(gap),
        StreamItem::End(TerminalKind::End),
    ]))
    .await;
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["gap", "end"]);
}

#[tokio::test]
async fn aborted_streams_do_not_end_normally() {
    for items in [
        vec![event(1, "values", "1"), StreamItem::Aborted],
        vec![event(1, "values", "1")],
    ] {
        let chunks: Vec<_> = of(items).collect().await;
        assert!(chunks.first().is_some_and(Result::is_ok));
        assert!(chunks.last().is_some_and(Result::is_err));
    }
}

#[tokio::test]
async fn shutdown_breaks_a_live_stream() {
    let shutdown = CancellationToken::new();
    let items = stream::iter([event(1, "values", "1")])
        .chain(stream::pending())
        .boxed();
    let mut stream = EventStream::new(items, STYLE, shutdown.clone());
    assert!(stream.next().await.is_some_and(|chunk| chunk.is_ok()));
    shutdown.cancel();
    assert!(stream.next().await.is_some_and(|chunk| chunk.is_err()));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn chunk_size_is_limited() {
    let many: Vec<StreamItem> = (1..=5_000)
        .map(|seq| event(seq, "values", vec![b'x'; 100]))
        .collect();
    let sizes: Vec<usize> = of(many)
        .filter_map(|chunk| async { chunk.ok().map(|chunk| chunk.len()) })
        .collect()
        .await;
    assert!(
        sizes.len() > 1 && sizes.iter().all(|size| *size < 70 * 1024),
        "{sizes:?}"
    );
}

#[tokio::test]
async fn filter_passes_requested_modes_and_errors() {
    let items = vec![
        event(1, "metadata", "1"),
        event(2, "values", "2"),
        event(3, "messages", "3"),
        event(4, "values|tools:1", "4"),
        event(5, "error", "5"),
        StreamItem::End(TerminalKind::Error),
    ];
    let text = text(of(items).filtered(EventFilter::only(vec!["values".to_owned()]))).await;
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["values", "values|tools:1", "error", "end"]);
}
