//! Appends of a publisher, and how it handles the replies, without a server.

use std::collections::VecDeque;

use bytes::Bytes;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::stream_bridge::{LogOutline, TerminalKind};

use super::*;
use crate::redis::protocol::StreamSnapshot;
use crate::redis::publisher::EXPOSE_UNSENT_AFTER;
use crate::redis::run_log::RunLog;
use crate::redis::stream_state::ReadOutcome;

fn options() -> RedisOptions {
    RedisOptions::at("redis://localhost")
}

fn log() -> RunLog {
    RunLog::new(
        RunId::parse("run-1").expect("valid"),
        StreamHead::default(),
        std::sync::Arc::default(),
        false,
        Tasks::new(),
    )
}

fn published(attempt: u32, known: StreamHead) -> RunLog {
    let log = log();
    log.become_publisher(attempt, Some(known), &LogOutline::default());
    log
}

fn push(log: &RunLog, attempt: u32, count: usize) {
    for _ in 0..count {
        log.push(
            attempt,
            EventName::Borrowed("values"),
            Bytes::from_static(b"{}").into(),
            &options(),
        )
        .expect("the publisher may push");
    }
}

/// Builds a stream head of events that attempt 1 published.
fn head(attempt: u32, tail: u64) -> StreamHead {
    let mut head = StreamHead {
        attempt,
        ..StreamHead::default()
    };
    (0..tail).for_each(|_| _ = head.append(1));
    head
}

fn sent(log: &RunLog) -> (Option<u64>, Vec<EventId>, bool, Option<TerminalKind>) {
    let append = log.next_append().expect("something is to be sent");
    (
        append.before,
        append.events.iter().map(|event| event.id).collect(),
        append.rebuild,
        append.end,
    )
}

fn answer(log: &RunLog, outcome: AppendOutcome, head: StreamHead) {
    let append = log.next_append().expect("something is to be sent");
    log.apply_reply(
        &append,
        Reply {
            outcome,
            head,
            logged: LogOutline::default(),
        },
    );
}

fn id(seq: u64, attempt: u32) -> EventId {
    EventId { seq, attempt }
}

fn read(log: &RunLog, next: u64, generation: u32) -> (ReadOutcome, Vec<EventId>) {
    let mut batch = VecDeque::new();
    let read = log.read(next, generation, None, &mut batch);
    (read, batch.iter().map(|entry| entry.event.id).collect())
}

#[test]
fn event_is_hidden_until_server_acknowledges_it() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 3);
    assert!(matches!(read(&log, 1, 0), (ReadOutcome::Nothing, _)));
    answer(&log, AppendOutcome::Stored, head(1, 3));
    assert_eq!(read(&log, 1, 0).1, [id(1, 1), id(2, 1), id(3, 1)]);
    assert_eq!(log.next_append(), None);
}

#[test]
fn end_is_sent_with_last_events_and_lost_reply_is_success() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 2);
    log.end(1, TerminalKind::End, None, &options())
        .expect("ended");
    assert_eq!(
        sent(&log),
        (
            Some(0),
            vec![id(1, 1), id(2, 1)],
            false,
            Some(TerminalKind::End)
        )
    );
    let ended = StreamHead {
        status: StreamStatus::Ended(TerminalKind::End),
        ..head(1, 2)
    };
    answer(&log, AppendOutcome::Ended, ended);
    assert_eq!(log.ended_by(1, TerminalKind::End), Ok(()));
    assert!(matches!(
        read(&log, 3, 0),
        (ReadOutcome::Ended(TerminalKind::End), _)
    ));
}

#[test]
fn lost_events_are_sent_again_with_their_ids() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 2);
    answer(&log, AppendOutcome::Stored, head(1, 2));
    log.become_publisher(2, Some(head(2, 2)), &LogOutline::default());
    push(&log, 2, 1);
    answer(
        &log,
        AppendOutcome::Behind,
        StreamHead {
            attempt: 2,
            ..StreamHead::default()
        },
    );
    assert_eq!(
        sent(&log),
        (Some(0), vec![id(1, 1), id(2, 1), id(3, 2)], false, None)
    );
}

#[test]
fn stream_with_lost_start_is_rebuilt_from_remaining_events() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 3);
    answer(&log, AppendOutcome::Stored, head(1, 3));
    push(&log, 1, 1);
    assert!(log.evict(1, false) > 0, "the server has it");
    assert!(matches!(read(&log, 1, 0), (ReadOutcome::Remote(_), _)));
    answer(
        &log,
        AppendOutcome::Behind,
        StreamHead {
            attempt: 1,
            ..StreamHead::default()
        },
    );
    assert_eq!(
        sent(&log),
        (Some(1), vec![id(2, 1), id(3, 1), id(4, 1)], true, None)
    );
    answer(
        &log,
        AppendOutcome::Stored,
        StreamHead {
            first: 2,
            ..head(1, 4)
        },
    );
    assert!(matches!(read(&log, 1, 0), (ReadOutcome::Gap(_), _)));
    assert_eq!(read(&log, 2, 0).1, [id(2, 1), id(3, 1), id(4, 1)]);
}

#[test]
fn provisional_events_are_renumbered_after_claim() {
    let log = log();
    log.become_publisher(2, None, &LogOutline::default());
    push(&log, 2, 2);
    assert_eq!(log.next_append(), Some(Append::claim(2)));
    answer(&log, AppendOutcome::Stored, head(2, 5));
    assert_eq!(sent(&log), (Some(5), vec![id(6, 2), id(7, 2)], false, None));
    assert!(
        matches!(read(&log, 1, 0), (ReadOutcome::Abandoned, _)),
        "a viewer that started before must reconnect"
    );
}

#[test]
fn events_after_remote_end_are_dropped() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 2);
    answer(&log, AppendOutcome::Stored, head(1, 2));
    push(&log, 1, 2);
    answer(
        &log,
        AppendOutcome::Ended,
        StreamHead {
            status: StreamStatus::Ended(TerminalKind::Cancel),
            ..head(1, 2)
        },
    );
    assert_eq!(read(&log, 1, 0).1, [id(1, 1), id(2, 1)]);
    assert!(matches!(
        read(&log, 3, 0),
        (ReadOutcome::Ended(TerminalKind::Cancel), _)
    ));
    assert_eq!(
        log.ended_by(1, TerminalKind::End),
        Err(BridgeError::Ended(log.run_id().clone()))
    );
}

#[test]
fn fenced_publisher_drops_unsent_events_and_aborts_viewers() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 1);
    answer(
        &log,
        AppendOutcome::Fenced,
        StreamHead {
            attempt: 3,
            ..StreamHead::default()
        },
    );
    assert!(matches!(read(&log, 1, 0), (ReadOutcome::Abandoned, _)));
    let fenced = BridgeError::Fenced {
        run_id: log.run_id().clone(),
        attempt: 1,
        current: 3,
    };
    assert_eq!(log.may_claim(1), Err(fenced));
    assert_eq!(log.may_claim(3), Ok(()));
}

#[test]
fn fencing_of_earlier_attempt_retains_events_of_later_one() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 2);
    let first = log.next_append().expect("something is to be sent");
    log.become_publisher(2, Some(head(2, 0)), &LogOutline::default());
    push(&log, 2, 1);
    log.apply_reply(
        &first,
        Reply {
            outcome: AppendOutcome::Fenced,
            head: head(2, 0),
            logged: LogOutline::default(),
        },
    );
    assert_eq!(sent(&log).1, [id(1, 1), id(2, 1), id(3, 2)]);
}

#[tokio::test(start_paused = true)]
async fn outage_exposes_unsent_events_with_final_numbers() {
    let (known, unknown) = (published(2, head(2, 1)), log());
    unknown.become_publisher(2, None, &LogOutline::default());
    for log in [&known, &unknown] {
        push(log, 2, 1);
        log.note_failure();
    }
    assert!(matches!(read(&known, 2, 0), (ReadOutcome::Nothing, _)));
    tokio::time::advance(EXPOSE_UNSENT_AFTER).await;
    assert_eq!(read(&known, 2, 0).1, [id(2, 2)]);
    assert!(known.is_settled());
    assert!(matches!(read(&unknown, 1, 0), (ReadOutcome::Nothing, _)));
}

#[test]
fn backlog_is_sent_in_large_batches() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 300);
    assert!(!log.may_batch());
    assert_eq!(sent(&log).1.len(), MAX_APPEND_EVENTS);
}

#[test]
fn stale_poll_result_is_not_a_loss() {
    let log = published(1, StreamHead::default());
    push(&log, 1, 3);
    answer(&log, AppendOutcome::Stored, head(1, 3));
    assert!(log.next_append().is_none(), "everything is sent");
    let request = log.poll_request();
    let before = || StreamSnapshot {
        head: Some(head(1, 3)),
        complete: true,
        events: Vec::new(),
    };
    log.claim_sending();
    push(&log, 1, 1);
    answer(&log, AppendOutcome::Stored, head(1, 4));
    assert!(log.next_append().is_none(), "everything is sent");
    log.evict(usize::MAX, false);
    assert_eq!(
        log.observe(before(), request, &options()),
        PollOutcome::UpToDate
    );
    assert!(
        log.claim_sending() && log.next_append().is_none(),
        "nothing is rebuilt"
    );
    assert_eq!(
        log.observe(before(), log.poll_request(), &options()),
        PollOutcome::Lost,
        "a later poll with the same result is a loss"
    );
}
