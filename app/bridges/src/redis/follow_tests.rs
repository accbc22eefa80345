//! What viewers of another node's run are shown when its stream was lost together with its owner, without a server.

use std::collections::VecDeque;

use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    BridgeError, EventData, EventName, LogOutline, TerminalKind,
};
use harness::runtime::tasks::Tasks;

use super::*;
use crate::redis::log::{Read, Wants};

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

/// A stream of which each attempt published up to an event.
fn outline(attempts: &[(u32, u64)]) -> Outline {
    let mut outline = Outline::default();
    for (attempt, up_to) in attempts {
        outline.attempt = *attempt;
        (outline.tail..*up_to).for_each(|_| _ = outline.append(*attempt));
    }
    outline
}

fn followed(outline: Outline) -> RunLog {
    RunLog::new(
        RunId::parse("run-1").expect("valid"),
        outline,
        std::sync::Arc::default(),
        true,
        Tasks::new(),
    )
}

fn look(
    log: &RunLog,
    outline: Outline,
    events: std::ops::RangeInclusive<u64>,
    attempt: u32,
) -> Observed {
    let look = Look {
        outline: Some(outline),
        whole: true,
        events: events.map(|seq| event(seq, attempt)).collect(),
    };
    log.observe(
        look,
        Wants::Events(0, BATCH_EVENTS),
        &RedisOptions::at("redis://localhost"),
    )
}

fn read(log: &RunLog, next: u64, last: EventId) -> Read {
    log.read(next, 0, Some(last), &mut VecDeque::new())
}

#[test]
fn a_later_attempt_that_went_on_from_before_what_was_seen_sends_viewers_back() {
    let log = followed(outline(&[(1, 20)]));
    assert_eq!(
        look(&log, outline(&[(1, 19), (2, 25)]), 21..=25, 2),
        Observed::More
    );
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Abandoned));
    assert_eq!(log.generation(), 1);
}

#[test]
fn a_later_attempt_that_went_on_after_what_was_seen_is_followed() {
    let log = followed(outline(&[(1, 20)]));
    assert_eq!(
        look(&log, outline(&[(1, 20), (2, 25)]), 21..=25, 2),
        Observed::Fine
    );
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Events));
    assert!(log.begins_with(id(21, 2)) && !log.begins_with(id(22, 2)));
}

#[test]
fn an_end_before_what_a_viewer_saw_is_not_its_end() {
    let ended = Outline {
        status: StreamStatus::Ended(TerminalKind::End),
        ..outline(&[(1, 10), (2, 15)])
    };
    assert!(matches!(
        read(&followed(ended.clone()), 21, id(20, 1)),
        Read::Abandoned
    ));
    assert!(matches!(
        read(&followed(ended), 16, id(15, 2)),
        Read::Ended(TerminalKind::End)
    ));
}

#[test]
fn who_waits_for_events_of_a_lost_attempt_comes_back_and_who_waits_for_the_owner_stays() {
    assert!(matches!(
        read(&followed(outline(&[(1, 10), (2, 15)])), 21, id(20, 1)),
        Read::Abandoned
    ));
    assert!(matches!(
        read(&followed(outline(&[(1, 10)])), 21, id(20, 1)),
        Read::Nothing
    ));
}

#[test]
fn a_follower_that_becomes_the_owner_of_less_than_it_showed_sends_viewers_back() {
    let log = followed(outline(&[(1, 20)]));
    log.own(2, Some(outline(&[(1, 12)])), &LogOutline::default());
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Abandoned));
    let log = followed(outline(&[(1, 20)]));
    log.own(2, Some(outline(&[(1, 20)])), &LogOutline::default());
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Nothing));
}

#[test]
fn what_the_durable_log_has_in_the_same_place_of_a_later_attempt_sends_viewers_back() {
    let log = followed(outline(&[(1, 20)]));
    log.start_over_after(id(20, 1), outline(&[(1, 15), (2, 30)]));
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Abandoned));
    assert_eq!(log.generation(), 1);
}

#[test]
fn a_log_that_did_not_answer_is_asked_again() {
    let log = followed(outline(&[(1, 20)]));
    assert_eq!(log.lacks(None), Some(id(20, 1)));
    assert_eq!(log.lacks(None), None, "somebody asks");
    log.observe_logged(id(20, 1), None);
    assert_eq!(log.lacks(None), Some(id(20, 1)));
    let page = LogPage {
        events: (20..=22).map(|seq| event(seq, 1)).collect(),
        end: Some(TerminalKind::End),
    };
    log.observe_logged(id(20, 1), Some(page));
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Events));
    assert!(matches!(
        read(&log, 23, id(22, 1)),
        Read::Ended(TerminalKind::End)
    ));
}

#[test]
fn an_owner_that_the_durable_log_refuses_shows_nothing_more_unless_it_is_the_later_attempt() {
    let log = followed(outline(&[(1, 20)]));
    log.own(1, Some(outline(&[(1, 20)])), &LogOutline::default());
    log.fenced_by(1);
    assert!(log.publishes(1));
    log.fenced_by(2);
    assert!(matches!(read(&log, 21, id(20, 1)), Read::Abandoned));
    let fenced = BridgeError::Fenced {
        run_id: log.run_id().clone(),
        attempt: 1,
        current: 2,
    };
    assert_eq!(log.may_claim(1), Err(fenced));
}
