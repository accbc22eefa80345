//! The frame reader with whole, split and broken streams.

use super::*;

const WIRE: &str = "event: metadata\ndata: {\"run_id\": \"R\"}\nid: 1-0\n\n: heartbeat\n\nevent: a\r\ndata: one\r\ndata:two\r\n\r\ndata\n\nevent: end\ndata: null\n\n";

fn frames(decoder: &mut SseDecoder) -> Vec<SseFrame> {
    std::iter::from_fn(|| decoder.next_frame().expect("a valid frame")).collect()
}

#[test]
fn frames_are_equal_for_every_byte_split() {
    let mut at_once = SseDecoder::default();
    at_once.push(WIRE.as_bytes());
    let expected = frames(&mut at_once);
    assert_eq!(expected.len(), 5);
    assert_eq!(expected[0].name(), "metadata");
    assert_eq!(expected[0].id.as_deref(), Some("1-0"));
    assert_eq!(expected[0].json().expect("json")["run_id"], "R");
    assert!(expected[1].is_comment());
    assert_eq!(expected[1].comments, ["heartbeat"]);
    assert_eq!(expected[2].data.as_deref(), Some("one\ntwo"));
    assert_eq!(
        (expected[3].name(), expected[3].data.as_deref()),
        ("message", Some(""))
    );

    for size in 1..WIRE.len() {
        let mut split = SseDecoder::default();
        let mut seen = Vec::new();
        for chunk in WIRE.as_bytes().chunks(size) {
            split.push(chunk);
            seen.extend(frames(&mut split));
        }
        assert_eq!(seen, expected, "in pieces of {size}");
        assert!(split.rest().is_empty());
    }
}

#[test]
fn raw_bytes_add_up_to_the_stream() {
    let mut decoder = SseDecoder::default();
    decoder.push(WIRE.as_bytes());
    decoder.push(b"event: cut sh");
    let raw: Vec<u8> = frames(&mut decoder)
        .iter()
        .flat_map(|frame| frame.raw.to_vec())
        .collect();
    assert_eq!(raw, WIRE.as_bytes());
    assert_eq!(decoder.rest(), "event: cut sh");
}

#[test]
fn broken_frame_is_an_error_and_reading_continues() {
    let mut decoder = SseDecoder::default();
    decoder.push(b"data: \xff\n\nevnt: x\n\ndata: {\n\n");
    assert!(matches!(
        decoder.next_frame(),
        Err(SseError::NotUtf8 { .. })
    ));
    assert!(
        matches!(decoder.next_frame(), Err(SseError::UnknownField { line }) if line == "evnt: x")
    );
    let frame = decoder.next_frame().expect("a frame").expect("whole");
    assert!(matches!(frame.json(), Err(SseError::NotJson { .. })));
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, size in 1_usize..7) {
        let mut decoder = SseDecoder::default();
        for chunk in bytes.chunks(size) {
            decoder.push(chunk);
            while !matches!(decoder.next_frame(), Ok(None)) {}
        }
    }
}
