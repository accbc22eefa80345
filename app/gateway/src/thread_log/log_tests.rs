//! Limits of a log, and what its readers get.

use std::sync::Arc;
use std::time::Duration;

use harness::clock::{Clock, SystemClock};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::thread_log::event::{Channel, EventKey, StatusChange};
use crate::thread_log::reader::LogReader;

fn run() -> Arc<RunId> {
    Arc::new(RunId::parse("r1").expect("an id"))
}

fn numbered(seq: u64, text: &str) -> (Draft, Identity) {
    let identity = Identity {
        seq,
        event_id: EventKey::Text(format!("e{seq}")),
        timestamp: 0,
    };
    (
        Draft::new(Channel::Values, Vec::new(), &json!(text)),
        identity,
    )
}

fn log(events: usize, bytes: usize) -> Arc<ThreadLog> {
    Arc::new(ThreadLog::new(LogLimits { events, bytes }))
}

fn append(log: &ThreadLog, seqs: std::ops::RangeInclusive<u64>) {
    log.add(
        &run(),
        SystemClock.now(),
        seqs.map(|seq| numbered(seq, "x")),
    );
    log.publish();
}

fn read(reader: &mut LogReader) -> Vec<u64> {
    let events = reader.read(usize::MAX).expect("not too slow");
    events.iter().map(|event| event.seq).collect()
}

#[test]
fn reader_gets_each_event_once() {
    let log = log(10, usize::MAX);
    append(&log, 1..=3);
    let mut reader = LogReader::new(log.clone(), 0);
    let mut later = LogReader::new(log.clone(), 2);
    assert_eq!(read(&mut reader), [1, 2, 3]);
    append(&log, 4..=5);
    assert_eq!(read(&mut reader), [4, 5]);
    assert!(read(&mut reader).is_empty());
    assert_eq!(read(&mut later), [3, 4, 5]);
}

#[tokio::test]
async fn end_of_the_log_is_seen_by_a_reader_that_read_after_it() {
    let log = log(10, 1_000);
    let mut reader = LogReader::new(log.clone(), 0);
    append(&log, 1..=2);
    log.close();
    assert_eq!(read(&mut reader), [1, 2]);
    assert_eq!(read(&mut reader), [0; 0]);
    let is_open = tokio::time::timeout(Duration::from_secs(5), reader.changed());
    assert_eq!(is_open.await, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_burst_are_read_together() {
    let log = log(10, usize::MAX);
    append(&log, 1..=1);
    let mut reader = LogReader::new(log.clone(), 0);
    let started = Instant::now();
    assert!(reader.changed().await);
    assert_eq!(read(&mut reader), [1]);
    append(&log, 2..=2);
    // An interrupted wait loses nothing.
    let interrupted = tokio::time::timeout(Duration::from_millis(1), reader.changed());
    interrupted.await.expect_err("the burst may go on");
    append(&log, 3..=3);
    assert!(reader.changed().await);
    assert_eq!(read(&mut reader), [2, 3]);
    assert_eq!(started.elapsed(), Duration::from_millis(2));
    // The first event after a silence is not delayed.
    tokio::time::advance(Duration::from_secs(1)).await;
    let since = Instant::now();
    append(&log, 4..=4);
    assert!(reader.changed().await);
    assert_eq!(since.elapsed(), Duration::ZERO);
}

#[test]
fn slow_reader_is_refused_instead_of_skipping_events() {
    let log = log(3, usize::MAX);
    let (mut slow, mut unread) = (
        LogReader::new(log.clone(), 0),
        LogReader::new(log.clone(), 0),
    );
    append(&log, 1..=1);
    assert_eq!(read(&mut slow), [1]);
    append(&log, 2..=9);
    slow.read(usize::MAX).expect_err("events are missing");
    // A reader that has read nothing gets what the log holds.
    assert_eq!(read(&mut unread), [7, 8, 9]);
    assert_eq!(unread.gap_after(5), Some(7));
    assert_eq!(unread.gap_after(6), None);
}

#[test]
fn bytes_of_held_events_are_limited() {
    let log = log(usize::MAX, 2_000);
    let large = "y".repeat(900);
    for seq in 1..=50 {
        log.add(&run(), SystemClock.now(), vec![numbered(seq, &large)]);
        assert!(log.state.lock().bytes <= 2_000);
    }
    assert_eq!(read(&mut LogReader::new(log.clone(), 0)), [50]);
    log.add(
        &run(),
        SystemClock.now(),
        vec![numbered(51, &"z".repeat(9_000))],
    );
    assert_eq!(read(&mut LogReader::new(log, 0)), [51]);
}

#[test]
fn page_is_limited_and_the_rest_follows() {
    let log = log(10, usize::MAX);
    append(&log, 1..=4);
    let mut reader = LogReader::new(log, 0);
    let mut seqs = Vec::new();
    for _ in 0..4 {
        let page = reader.read(1).expect("not too slow");
        assert_eq!(page.len(), 1);
        seqs.push(page[0].seq);
    }
    assert_eq!(seqs, [1, 2, 3, 4]);
}

#[test]
fn events_after_any_position_are_found() {
    let log = log(100, usize::MAX);
    assert!(log.after(0, usize::MAX).events.is_empty());
    append(&log, 11..=60);
    for position in [0, 10, 11, 30, 43, 44, 45, 59, 60, 99] {
        let events = log.after(position, usize::MAX).events;
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (11..=60).filter(|seq| *seq > position).collect();
        assert_eq!(seqs, expected, "after {position}");
    }
}

#[test]
fn rolled_back_run_vanishes_from_replay() {
    let log = log(10, usize::MAX);
    append(&log, 1..=3);
    let other = Arc::new(RunId::parse("r2").expect("an id"));
    log.add(&other, SystemClock.now(), vec![numbered(4, "x")]);
    log.remove_run(&run());
    assert_eq!(read(&mut LogReader::new(log.clone(), 0)), [4]);
    assert_eq!(log.state.lock().events.len(), 1);
}

#[test]
fn log_of_deleted_thread_is_not_that_of_a_new_one() {
    let (log, now) = (log(10, usize::MAX), SystemClock.now());
    assert!(!log.is_of_deleted_thread(None));
    log.add(&run(), now, vec![numbered(1, "x")]);
    assert!(!log.is_of_deleted_thread(Some(now)));
    assert!(log.is_of_deleted_thread(Some(now + chrono::TimeDelta::seconds(1))));
    assert!(log.is_of_deleted_thread(None));
}

#[test]
fn tree_follows_lifecycle_events() {
    let log = log(10, usize::MAX);
    assert_eq!(log.tree(), None);
    let (draft, identity) = numbered(1, "x");
    let change = StatusChange {
        status: "running",
        graph: "g".to_owned(),
    };
    let draft = Draft {
        change: Some(change),
        ..draft
    };
    log.add(&run(), SystemClock.now(), vec![(draft, identity)]);
    assert_eq!(json!(log.tree())["status"], "running");
}
