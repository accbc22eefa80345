//! Packed entries are those that were published.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::stream_bridge::{EventData, EventName, StreamEvent};

/// Kind of an event of a random log.
#[derive(Debug, Clone)]
enum Kind {
    /// A token of one of two messages.
    Token(u8, String),
    /// An event that is similar to no other.
    Other(String),
    /// The first event of a newer attempt.
    Attempt,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => (0..2_u8, "[ab\"]{0,3}").prop_map(|(id, text)| Kind::Token(id, text)),
        1 => ".{0,80}".prop_map(Kind::Other),
        1 => Just(Kind::Attempt),
    ]
}

/// Returns a token as the encoder cuts it: everything after its text is shared.
fn token(id: u8, text: &str) -> (EventName, EventData) {
    let head = format!(r#"[{{"content":"{text}"#);
    let tail = format!(
        r#"","additional_kwargs":{{}},"type":"AIMessageChunk","id":"{id}"}},{{"langgraph_node":"model"}}]"#
    );
    let data = EventData::with_tail(head.into(), Bytes::from(tail));
    (EventName::Borrowed("messages"), data)
}

/// Returns the entries of a log whose first sequence number is `first`.
fn log_of(kinds: &[Kind], first: u64) -> Vec<Entry> {
    let (began, mut attempt) = (Instant::now(), 1);
    let entry = |(seq, kind): (u64, &Kind)| {
        let (event, data) = match kind {
            Kind::Token(id, text) => token(*id, text),
            Kind::Other(text) => ("values".into(), Bytes::from(text.clone()).into()),
            Kind::Attempt => {
                attempt += 1;
                ("metadata".into(), Bytes::from_static(b"{}").into())
            }
        };
        let id = EventId { seq, attempt };
        Entry {
            event: StreamEvent { id, event, data },
            at: began + Duration::from_millis(7 * seq),
        }
    };
    (first..).zip(kinds).map(entry).collect()
}

fn pieces(entry: &Entry) -> (EventId, EventName, Vec<Bytes>, Instant) {
    let StreamEvent { id, event, data } = &entry.event;
    (
        *id,
        event.clone(),
        data.pieces().cloned().collect(),
        entry.at,
    )
}

fn assert_same(entries: &Entries, expected: &[Entry]) {
    assert_eq!(entries.len(), expected.len());
    for from in 0..=expected.len() {
        let read: Vec<_> = entries.range(from).map(|entry| pieces(&entry)).collect();
        let expected: Vec<_> = expected[from..].iter().map(pieces).collect();
        assert_eq!(read, expected);
    }
    let ids: Vec<EventId> = expected.iter().map(|entry| entry.event.id).collect();
    let parts = entries.ids().flat_map(|(first, count)| {
        (0..count as u64).map(move |nth| EventId {
            seq: first.seq + nth,
            attempt: first.attempt,
        })
    });
    assert_eq!(parts.collect::<Vec<_>>(), ids);
    assert_eq!(entries.first_id(), ids.first().copied());
    assert_eq!(entries.last_id(), ids.last().copied());
    for at in 0..=ids.len() {
        assert_eq!(entries.attempt_at(at), ids.get(at).map(|id| id.attempt));
    }
    for attempt in 0..4 {
        let up_to = ids.iter().filter(|id| id.attempt <= attempt).count();
        assert_eq!(entries.up_to_attempt(attempt), up_to);
    }
    let parts = entries.older.iter().map(Older::size);
    let recent = entries.recent.iter().map(Entry::size);
    assert_eq!(entries.bytes(), parts.chain(recent).sum::<usize>());
}

proptest! {
    #[test]
    fn packed_events_are_read_as_published(
        kinds in prop::collection::vec(kind(), 0..120),
        first in 1..1_000_u64,
        evicted in 0..130_usize,
    ) {
        let published = log_of(&kinds, first);
        let mut entries = Entries::default();
        published.iter().cloned().for_each(|entry| entries.push(entry));
        assert_same(&entries, &published);
        let evicted = evicted.min(published.len());
        (0..evicted).for_each(|_| entries.evict_oldest());
        assert_same(&entries, &published[evicted..]);
        entries.finish();
        assert_same(&entries, &published[evicted..]);
        entries.evict_all_but_newest();
        assert_same(&entries, &published[published.len().saturating_sub(1).max(evicted)..]);
    }
}

#[test]
fn tokens_use_a_fraction_of_their_entries() {
    let token = |n| Kind::Token(0, format!("word {n}"));
    let kinds: Vec<Kind> = (0..1_000).map(token).collect();
    let published = log_of(&kinds, 1);
    let unpacked: usize = published.iter().map(Entry::size).sum();
    let mut entries = Entries::default();
    published.into_iter().for_each(|entry| entries.push(entry));
    entries.finish();
    assert!(
        entries.bytes() * 8 < unpacked,
        "{} of {unpacked}",
        entries.bytes()
    );
}

#[test]
fn long_event_that_shares_little_is_not_copied() {
    let mut kinds: Vec<Kind> = ["a", "b"]
        .map(|text| Kind::Token(0, text.to_owned()))
        .to_vec();
    let long = |text: &str| Kind::Other(text.repeat(2 * 1024));
    kinds.extend([long("1"), long("2")]);
    let mut entries = Entries::default();
    log_of(&kinds, 1)
        .into_iter()
        .for_each(|entry| entries.push(entry));
    entries.finish();
    let parts: Vec<usize> = entries.older.iter().map(Older::len).collect();
    assert_eq!(parts, [2, 1, 1]);
}

#[test]
fn shared_bytes_of_long_texts_are_stored_once() {
    let long = "é".repeat(10_000);
    let kinds = ["", "x", "yy"].map(|own| Kind::Other(format!("{long}{own}{long}")));
    let published = log_of(&kinds, 1);
    let mut entries = Entries::default();
    published
        .iter()
        .cloned()
        .for_each(|entry| entries.push(entry));
    entries.finish();
    assert_same(&entries, &published);
    assert!(
        entries.bytes() < 2 * long.len() + 1_000,
        "{}",
        entries.bytes()
    );
}
