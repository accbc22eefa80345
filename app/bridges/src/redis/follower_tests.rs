//! Followers of another node's run whose stream was lost together with its publisher, without a
//! server.

use std::collections::VecDeque;

use deerflow_core::ids::RunId;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::stream_bridge::{
    BridgeError, EventData, EventName, LogOutline, TerminalKind,
};

use super::*;
use crate::redis::poll::PollRequest;
use crate::redis::stream_state::ReadOutcome;

fn id(seq: u64, attempt: u32) -> EventId {
    EventId { seq, attempt }
}

fn event(seq: u64, attempt: u32) -> StreamEvent {
    StreamEvent {
        id: id(seq, attempt),
        event: EventName::Borrowed("values"),
        data: EventData::from(bytes::Bytes::from_static(b"{}")),
    }
}

/// Builds a stream head in which each attempt published up to an event.
fn head(attempts: &[(u32, u64)]) -> StreamHead {
    let mut head = StreamHead::default();
    for (attempt, up_to) in attempts {
        head.attempt = *attempt;
        (head.tail..*up_to).for_each(|_| _ = head.append(*attempt));
    }
    head
}

fn followed(head: StreamHead) -> RunLog {
    RunLog::new(
        RunId::parse("run-1").expect("valid"),
        head,
        std::sync::Arc::default(),
        true,
        Tasks::new(),
    )
}

fn snapshot(
    log: &RunLog,
    head: StreamHead,
    events: std::ops::RangeInclusive<u64>,
    attempt: u32,
) -> PollOutcome {
    let snapshot = StreamSnapshot {
        head: Some(head),
        complete: true,
        events: events.map(|seq| event(seq, attempt)).collect(),
    };
    log.observe(
        snapshot,
        PollRequest::Events(0, BATCH_EVENTS),
        &RedisOptions::at("redis://localhost"),
    )
}

fn read(log: &RunLog, next: u64, last: EventId) -> ReadOutcome {
    log.read(next, 0, Some(last), &mut VecDeque::new())
}

#[test]
fn later_attempt_from_earlier_position_aborts_viewers() {
    let log = followed(head(&[(1, 20)]));
    assert_eq!(
        snapshot(&log, head(&[(1, 19), (2, 25)]), 21..=25, 2),
        PollOutcome::More
    );
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Abandoned));
    assert_eq!(log.generation(), 1);
}

#[test]
fn later_attempt_from_later_position_is_followed() {
    let log = followed(head(&[(1, 20)]));
    assert_eq!(
        snapshot(&log, head(&[(1, 20), (2, 25)]), 21..=25, 2),
        PollOutcome::UpToDate
    );
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Events));
    assert!(log.begins_with(id(21, 2)) && !log.begins_with(id(22, 2)));
}

#[test]
fn end_before_seen_events_does_not_end_viewer() {
    let ended = StreamHead {
        status: StreamStatus::Ended(TerminalKind::End),
        ..head(&[(1, 10), (2, 15)])
    };
    assert!(matches!(
        read(&followed(ended.clone()), 21, id(20, 1)),
        ReadOutcome::Abandoned
    ));
    assert!(matches!(
        read(&followed(ended), 16, id(15, 2)),
        ReadOutcome::Ended(TerminalKind::End)
    ));
}

#[test]
fn viewer_of_lost_attempt_aborts_viewer_of_publisher_waits() {
    assert!(matches!(
        read(&followed(head(&[(1, 10), (2, 15)])), 21, id(20, 1)),
        ReadOutcome::Abandoned
    ));
    assert!(matches!(
        read(&followed(head(&[(1, 10)])), 21, id(20, 1)),
        ReadOutcome::Nothing
    ));
}

#[test]
fn follower_becoming_shorter_publisher_aborts_viewers() {
    let log = followed(head(&[(1, 20)]));
    log.become_publisher(2, Some(head(&[(1, 12)])), &LogOutline::default());
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Abandoned));
    let log = followed(head(&[(1, 20)]));
    log.become_publisher(2, Some(head(&[(1, 20)])), &LogOutline::default());
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Nothing));
}

#[test]
fn durable_log_with_later_attempt_aborts_viewers() {
    let log = followed(head(&[(1, 20)]));
    log.start_over_after(id(20, 1), head(&[(1, 15), (2, 30)]));
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Abandoned));
    assert_eq!(log.generation(), 1);
}

#[test]
fn durable_log_read_is_retried_after_failure() {
    let log = followed(head(&[(1, 20)]));
    assert_eq!(log.needs_log_read(None), Some(id(20, 1)));
    assert_eq!(log.needs_log_read(None), None, "a read is in progress");
    log.observe_logged(id(20, 1), None);
    assert_eq!(log.needs_log_read(None), Some(id(20, 1)));
    let page = LogPage {
        events: (20..=22).map(|seq| event(seq, 1)).collect(),
        end: Some(TerminalKind::End),
    };
    log.observe_logged(id(20, 1), Some(page));
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Events));
    assert!(matches!(
        read(&log, 23, id(22, 1)),
        ReadOutcome::Ended(TerminalKind::End)
    ));
}

#[test]
fn publisher_fenced_by_durable_log_hides_unsent_events() {
    let log = followed(head(&[(1, 20)]));
    log.become_publisher(1, Some(head(&[(1, 20)])), &LogOutline::default());
    log.fenced_by(1);
    assert!(log.publishes(1));
    log.fenced_by(2);
    assert!(matches!(read(&log, 21, id(20, 1)), ReadOutcome::Abandoned));
    let fenced = BridgeError::Fenced {
        run_id: log.run_id().clone(),
        attempt: 1,
        current: 2,
    };
    assert_eq!(log.may_claim(1), Err(fenced));
}
