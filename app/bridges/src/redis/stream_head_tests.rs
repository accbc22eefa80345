//! Positions of cursors in a stream, and streams joined with the durable log.

use super::*;

fn head() -> StreamHead {
    let pairs = [
        ("attempt", "3"),
        ("first", "2"),
        ("tail", "9"),
        ("from:1", "1"),
        ("from:3", "6"),
        ("ended", "cancel"),
    ];
    let fields = pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    StreamHead::read(&fields).expect("the fields have an attempt")
}

#[test]
fn script_hash_is_parsed() {
    let head = head();
    assert_eq!((head.attempt, head.first, head.tail), (3, 2, 9));
    assert_eq!(head.ended(), Some(TerminalKind::Cancel));
    assert_eq!([1, 5, 6, 9].map(|seq| head.attempt_at(seq)), [1, 1, 3, 3]);
    assert_eq!(
        StreamHead::read(&HashMap::from([("forget".to_owned(), "1".to_owned())])),
        None
    );
}

#[test]
fn cursor_is_located_by_attempt() {
    let after = |seq, attempt| head().locate(ResumeFrom::After(EventId { seq, attempt }));
    assert_eq!(after(1, 1), Some(2));
    assert_eq!(after(4, 1), Some(5));
    assert_eq!(
        after(7, 1),
        Some(6),
        "the newer attempt from its first event"
    );
    assert_eq!(after(7, 2), Some(6));
    assert_eq!(
        (
            after(4, 3),
            after(7, 4),
            after(10, 3),
            after(0, 0),
            after(u64::MAX, 1)
        ),
        (None, None, None, None, None)
    );
    assert_eq!(
        (
            head().locate(ResumeFrom::Start),
            head().locate(ResumeFrom::Tail)
        ),
        (None, Some(10))
    );
    let later = StreamHead { first: 8, ..head() };
    assert_eq!(
        later.locate(ResumeFrom::After(EventId { seq: 7, attempt: 3 })),
        Some(8),
        "its own event is gone"
    );
    assert_eq!(
        later.locate(ResumeFrom::After(EventId { seq: 7, attempt: 1 })),
        None,
        "the newer attempt's beginning is gone"
    );
}

#[test]
fn cursor_at_unsent_event_waits_for_it() {
    let rebuilt = StreamHead {
        attempt: 1,
        tail: 3,
        published_seq: 9,
        starts: BTreeMap::from([(1, 1)]),
        ..StreamHead::default()
    };
    let after = |seq, attempt| rebuilt.locate(ResumeFrom::After(EventId { seq, attempt }));
    assert_eq!(
        (after(9, 1), after(10, 1), after(9, 2)),
        (Some(10), None, None)
    );
    let ended = StreamHead {
        status: StreamStatus::Ended(TerminalKind::Cancel),
        ..rebuilt.clone()
    };
    assert_eq!(
        ended.locate(ResumeFrom::After(EventId { seq: 9, attempt: 1 })),
        None
    );
}

#[test]
fn durable_log_is_merged_or_replaces_older_stream() {
    let logged = |ranges: &[(u64, u64, u32)], end| {
        let mut logged = LogOutline {
            ranges: Vec::new(),
            end,
        };
        ranges.iter().for_each(|(first, last, attempt)| {
            logged.push(LogRange {
                first: *first,
                last: *last,
                attempt: *attempt,
            })
        });
        logged
    };
    let bounds = |head: StreamHead| {
        (
            head.first,
            head.tail,
            head.starts.into_iter().collect::<Vec<_>>(),
        )
    };
    let stream = StreamHead {
        attempt: 1,
        first: 5,
        tail: 9,
        starts: BTreeMap::from([(1, 1)]),
        ..StreamHead::default()
    };
    assert_eq!(
        bounds(stream.clone().with(&logged(&[(1, 6, 1)], None))),
        (1, 9, vec![(1, 1)])
    );
    assert_eq!(
        bounds(stream.clone().with(&logged(&[(1, 3, 1)], None))),
        (5, 9, vec![(5, 1)]),
        "4 is missing"
    );
    assert_eq!(
        bounds(
            stream
                .clone()
                .with(&logged(&[(1, 4, 1), (8, 11, 1), (12, 12, 2)], None))
        ),
        (1, 12, vec![(1, 1), (12, 2)])
    );
    assert_eq!(
        bounds(
            stream
                .clone()
                .with(&logged(&[(1, 4, 1), (11, 12, 1)], None))
        ),
        (11, 12, vec![(11, 1)]),
        "10 is missing"
    );
    assert_eq!(
        bounds(StreamHead::default().with(&logged(&[(1, 4, 1)], None))),
        (1, 4, vec![(1, 1)])
    );
    let ended = |end| {
        stream
            .clone()
            .with(&logged(&[(8, 9, 1)], Some(end)))
            .ended()
    };
    assert_eq!(
        (
            ended((9, TerminalKind::Error)),
            ended((8, TerminalKind::Error))
        ),
        (Some(TerminalKind::Error), None)
    );
    assert_eq!(
        bounds(StreamHead::default().with(&LogOutline::default())),
        (1, 0, vec![])
    );
}

#[test]
fn page_size_shrinks_with_event_size() {
    assert_eq!(StreamHead::default().page(), 64);
    assert_eq!(
        StreamHead {
            tail: 10,
            bytes: 10 * 32 * 1024,
            ..StreamHead::default()
        }
        .page(),
        2
    );
    assert_eq!(
        StreamHead {
            tail: 1,
            bytes: 1 << 30,
            ..StreamHead::default()
        }
        .page(),
        1
    );
}
