//! Tests of frame.

use super::*;
use harness::ids::RunId;
use harness::runtime::stream_bridge::EventId;

fn event(data: &'static [u8]) -> StreamEvent {
    StreamEvent {
        id: EventId { seq: 3, attempt: 1 },
        event: "values".into(),
        data: Bytes::from_static(data).into(),
    }
}

fn written(style: Style, write: impl FnOnce(&mut Frames)) -> String {
    let mut frames = Frames::new(style);
    write(&mut frames);
    let mut text = Vec::new();
    while let Some(chunk) = frames.next_chunk() {
        text.extend_from_slice(&chunk);
    }
    assert_eq!(frames.size(), 0);
    String::from_utf8(text).unwrap()
}

const DEERFLOW: Style = Style {
    dialect: Dialect::DeerFlow,
    ids: true,
};
const PLATFORM: Style = Style {
    dialect: Dialect::Platform,
    ids: false,
};

#[test]
fn frames_are_the_recorded_bytes_of_each_dialect() {
    let all = |frames: &mut Frames| {
        frames.event(&event(br#"{"a":1}"#));
        frames.heartbeat();
        frames.end();
    };
    assert_eq!(
        written(DEERFLOW, all),
        "event: values\ndata: {\"a\":1}\nid: 3-1\n\n: heartbeat\n\nevent: end\ndata: null\n\n"
    );
    assert_eq!(
        written(PLATFORM, all),
        "event: values\r\ndata: {\"a\":1}\r\n\r\n: heartbeat\r\n\r\nevent: end\r\ndata: null\r\n\r\n"
    );
}

#[test]
fn gap_has_all_fields_of_the_web_ui() {
    let id = |seq| EventId { seq, attempt: 1 };
    let run = RunId::parse("r").unwrap();
    let text = written(DEERFLOW, |frames| {
        frames.gap(&Gap::new(&run, None, id(7), id(9)))
    });
    assert_eq!(
        text,
        "event: gap\ndata: {\"code\":\"stream_replay_gap\",\"run_id\":\"r\",\"requested_event_id\":null,\
             \"earliest_available_event_id\":\"7-1\",\"latest_available_event_id\":\"9-1\",\"recovery\":\"reload_durable_state\"}\n\n"
    );
}

#[test]
fn pieces_of_large_data_are_shared_until_they_are_sent() {
    let piece = Bytes::from(vec![b'x'; MIN_PIECE]);
    let pieces = vec![piece; LARGE_DATA / MIN_PIECE];
    let mut frames = Frames::new(DEERFLOW);
    frames.named("values", &pieces.into(), 1);
    assert!(frames.buffer.capacity() < MIN_CHUNK);
    let chunks: Vec<usize> = std::iter::from_fn(|| Some(frames.next_chunk()?.len())).collect();
    assert!((17..20).contains(&chunks.len()), "{chunks:?}");
    let rest = "event: values\ndata: \nid: 1\n\n".len();
    assert_eq!((chunks.iter().sum(), frames.size()), (LARGE_DATA + rest, 0));
}

#[test]
fn small_frames_form_one_chunk_and_large_data_is_shared() {
    let mut frames = Frames::new(DEERFLOW);
    frames.event(&event(b"1"));
    frames.event(&event(b"2"));
    assert!(frames.next_chunk().is_some());
    assert!(frames.next_chunk().is_none());
    let large = StreamEvent {
        data: Bytes::from(vec![b'x'; MIN_CHUNK]).into(),
        ..event(b"")
    };
    frames.event(&large);
    frames.event(&event(b"3"));
    let chunks: Vec<Bytes> = std::iter::from_fn(|| frames.next_chunk()).collect();
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks[1].as_ptr(), large.data.head().as_ptr());
}
