//! Tests of joining.

use proptest::prelude::*;

use super::*;

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[tokio::test(start_paused = true)]
async fn parts_are_joined_by_number() {
    let mut buffer = PartBuffer::default();
    let now = Instant::now();
    assert_eq!(buffer.add("a", 3, 2, bytes("c"), now), Joined::Waiting);
    assert_eq!(buffer.add("b", 2, 0, bytes("x"), now), Joined::Waiting);
    assert_eq!(buffer.add("a", 3, 0, bytes("a"), now), Joined::Waiting);
    assert_eq!(buffer.add("a", 3, 0, bytes("a"), now), Joined::Waiting);
    assert_eq!(
        buffer.add("a", 3, 1, bytes("b"), now),
        Joined::Complete(bytes("abc"))
    );
    assert_eq!(buffer.events.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn incomplete_event_expires_after_silence_not_after_age() {
    let mut buffer = PartBuffer::default();
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    buffer.add("a", 3, 0, bytes("a"), at(0));
    buffer.add("a", 3, 1, bytes("b"), at(4));
    assert_eq!(
        buffer.add("a", 3, 2, bytes("c"), at(8)),
        Joined::Complete(bytes("abc"))
    );
    buffer.add("a", 2, 0, bytes("a"), at(10));
    assert_eq!(buffer.add("a", 2, 1, bytes("b"), at(16)), Joined::Waiting);
}

#[tokio::test(start_paused = true)]
async fn event_above_the_limit_is_reported_when_all_parts_came() {
    let mut buffer = PartBuffer::default();
    let now = Instant::now();
    let part = Bytes::from(vec![0; 1024 * 1024]);
    for seq in 0..8 {
        assert_eq!(buffer.add("a", 10, seq, part.clone(), now), Joined::Waiting);
    }
    assert_eq!(buffer.add("a", 10, 8, part.clone(), now), Joined::Waiting);
    let waiting: usize = buffer.events.values().map(|event| event.bytes).sum();
    assert_eq!(waiting, 0);
    assert_eq!(buffer.add("a", 10, 9, part, now), Joined::TooLarge);
    assert!(buffer.events.is_empty());
}

#[tokio::test(start_paused = true)]
async fn contradicting_numbers_are_invalid() {
    let mut buffer = PartBuffer::default();
    let now = Instant::now();
    assert_eq!(buffer.add("a", 2, 2, bytes("a"), now), Joined::Invalid);
    assert_eq!(
        buffer.add("a", u32::MAX, 0, bytes("a"), now),
        Joined::Invalid
    );
    buffer.add("a", 2, 0, bytes("a"), now);
    assert_eq!(buffer.add("a", 3, 1, bytes("a"), now), Joined::Invalid);
    assert_eq!(
        buffer.add("a", 0, 7, bytes("z"), now),
        Joined::Complete(bytes("z"))
    );
}

proptest! {
    #[test]
    fn memory_stays_within_the_limit(
        parts in proptest::collection::vec((0_u8..100, 0_u32..12, 0_u32..12, 0_usize..900_000), 1..60)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut buffer = PartBuffer::default();
            let block = Bytes::from(vec![7; 900_000]);
            for (id, sum, seq, size) in parts {
                buffer.add(&id.to_string(), sum, seq, block.slice(..size), Instant::now());
                let total: usize = buffer.events.values().map(|event| event.bytes).sum();
                assert!(total <= MAX_JOINED_BYTES && buffer.events.len() <= MAX_INCOMPLETE);
            }
        });
    }
}
