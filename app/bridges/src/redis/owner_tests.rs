//! What an owner sends, and what it makes of the answers, without a server.

use std::collections::VecDeque;

use harness::runtime::tasks::Tasks;

use super::*;
use crate::redis::link::Look;
use crate::redis::log::Read;

fn options() -> RedisOptions {
    RedisOptions::at("redis://localhost")
}

fn log() -> RunLog {
    RunLog::new(
        RunId::parse("run-1").expect("valid"),
        Outline::default(),
        std::sync::Arc::default(),
        false,
        Tasks::new(),
    )
}

fn owned(attempt: u32, known: Outline) -> RunLog {
    let log = log();
    log.own(attempt, Some(known), &LogOutline::default());
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
        .expect("an owner may");
    }
}

/// An outline of events that attempt 1 published.
fn outline(attempt: u32, tail: u64) -> Outline {
    let mut outline = Outline {
        attempt,
        ..Outline::default()
    };
    (0..tail).for_each(|_| _ = outline.append(1));
    outline
}

fn sent(log: &RunLog) -> (Option<u64>, Vec<EventId>, bool, Option<TerminalKind>) {
    let append = log.next_append().expect("something is to be sent");
    (
        append.before,
        append.events.iter().map(|event| event.id).collect(),
        append.remake,
        append.end,
    )
}

fn answer(log: &RunLog, verdict: Verdict, outline: Outline) {
    let append = log.next_append().expect("something is to be sent");
    log.settle(
        &append,
        Reply {
            verdict,
            outline,
            logged: LogOutline::default(),
        },
    );
}

fn id(seq: u64, attempt: u32) -> EventId {
    EventId { seq, attempt }
}

fn read(log: &RunLog, next: u64, generation: u32) -> (Read, Vec<EventId>) {
    let mut batch = VecDeque::new();
    let read = log.read(next, generation, None, &mut batch);
    (read, batch.iter().map(|entry| entry.event.id).collect())
}

#[test]
fn nobody_sees_an_event_before_the_server_has_it() {
    let log = owned(1, Outline::default());
    push(&log, 1, 3);
    assert!(matches!(read(&log, 1, 0), (Read::Nothing, _)));
    answer(&log, Verdict::Done, outline(1, 3));
    assert_eq!(read(&log, 1, 0).1, [id(1, 1), id(2, 1), id(3, 1)]);
    assert_eq!(log.next_append(), None);
}

#[test]
fn the_end_goes_with_the_last_events_and_a_lost_answer_to_it_is_no_refusal() {
    let log = owned(1, Outline::default());
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
    let ended = Outline {
        status: StreamStatus::Ended(TerminalKind::End),
        ..outline(1, 2)
    };
    answer(&log, Verdict::Ended, ended);
    assert_eq!(log.ended_by(1, TerminalKind::End), Ok(()));
    assert!(matches!(
        read(&log, 3, 0),
        (Read::Ended(TerminalKind::End), _)
    ));
}

#[test]
fn what_the_server_lost_is_sent_again_with_the_ids_it_had() {
    let log = owned(1, Outline::default());
    push(&log, 1, 2);
    answer(&log, Verdict::Done, outline(1, 2));
    log.own(2, Some(outline(2, 2)), &LogOutline::default());
    push(&log, 2, 1);
    answer(
        &log,
        Verdict::Short,
        Outline {
            attempt: 2,
            ..Outline::default()
        },
    );
    assert_eq!(
        sent(&log),
        (Some(0), vec![id(1, 1), id(2, 1), id(3, 2)], false, None)
    );
}

#[test]
fn a_stream_whose_beginning_nobody_holds_is_made_from_what_there_is() {
    let log = owned(1, Outline::default());
    push(&log, 1, 3);
    answer(&log, Verdict::Done, outline(1, 3));
    push(&log, 1, 1);
    assert!(log.release(1, false) > 0, "the server has it");
    assert!(matches!(read(&log, 1, 0), (Read::AtTheServer(_), _)));
    answer(
        &log,
        Verdict::Short,
        Outline {
            attempt: 1,
            ..Outline::default()
        },
    );
    assert_eq!(
        sent(&log),
        (Some(1), vec![id(2, 1), id(3, 1), id(4, 1)], true, None)
    );
    answer(
        &log,
        Verdict::Done,
        Outline {
            first: 2,
            ..outline(1, 4)
        },
    );
    assert!(matches!(read(&log, 1, 0), (Read::Gap(_), _)));
    assert_eq!(read(&log, 2, 0).1, [id(2, 1), id(3, 1), id(4, 1)]);
}

#[test]
fn what_a_later_attempt_published_before_it_knew_its_place_is_numbered_then() {
    let log = log();
    log.own(2, None, &LogOutline::default());
    push(&log, 2, 2);
    assert_eq!(log.next_append(), Some(Append::claim(2)));
    answer(&log, Verdict::Done, outline(2, 5));
    assert_eq!(sent(&log), (Some(5), vec![id(6, 2), id(7, 2)], false, None));
    assert!(
        matches!(read(&log, 1, 0), (Read::Abandoned, _)),
        "who began before comes back"
    );
}

#[test]
fn events_that_came_after_an_end_elsewhere_never_were() {
    let log = owned(1, Outline::default());
    push(&log, 1, 2);
    answer(&log, Verdict::Done, outline(1, 2));
    push(&log, 1, 2);
    answer(
        &log,
        Verdict::Ended,
        Outline {
            status: StreamStatus::Ended(TerminalKind::Cancel),
            ..outline(1, 2)
        },
    );
    assert_eq!(read(&log, 1, 0).1, [id(1, 1), id(2, 1)]);
    assert!(matches!(
        read(&log, 3, 0),
        (Read::Ended(TerminalKind::Cancel), _)
    ));
    assert_eq!(
        log.ended_by(1, TerminalKind::End),
        Err(BridgeError::Ended(log.run_id().clone()))
    );
}

#[test]
fn a_fenced_owner_forgets_what_it_tried_and_sends_its_viewers_away() {
    let log = owned(1, Outline::default());
    push(&log, 1, 1);
    answer(
        &log,
        Verdict::Fenced,
        Outline {
            attempt: 3,
            ..Outline::default()
        },
    );
    assert!(matches!(read(&log, 1, 0), (Read::Abandoned, _)));
    let fenced = BridgeError::Fenced {
        run_id: log.run_id().clone(),
        attempt: 1,
        current: 3,
    };
    assert_eq!(log.may_claim(1), Err(fenced));
    assert_eq!(log.may_claim(3), Ok(()));
}

#[test]
fn a_refusal_of_the_attempt_before_takes_nothing_from_the_later_one_of_this_node() {
    let log = owned(1, Outline::default());
    push(&log, 1, 2);
    let first = log.next_append().expect("something is to be sent");
    log.own(2, Some(outline(2, 0)), &LogOutline::default());
    push(&log, 2, 1);
    log.settle(
        &first,
        Reply {
            verdict: Verdict::Fenced,
            outline: outline(2, 0),
            logged: LogOutline::default(),
        },
    );
    assert_eq!(sent(&log).1, [id(1, 1), id(2, 1), id(3, 2)]);
}

#[tokio::test(start_paused = true)]
async fn after_a_second_without_an_answer_viewers_here_see_what_waits_unless_its_place_is_unknown()
{
    let (known, unknown) = (owned(2, outline(2, 1)), log());
    unknown.own(2, None, &LogOutline::default());
    for log in [&known, &unknown] {
        push(log, 2, 1);
        log.fail();
    }
    assert!(matches!(read(&known, 2, 0), (Read::Nothing, _)));
    tokio::time::advance(SHOW_WHAT_WAITS_AFTER).await;
    assert_eq!(read(&known, 2, 0).1, [id(2, 2)]);
    assert!(known.is_settled());
    assert!(matches!(read(&unknown, 1, 0), (Read::Nothing, _)));
}

#[test]
fn a_backlog_goes_out_in_larger_pieces() {
    let log = owned(1, Outline::default());
    push(&log, 1, 300);
    assert!(!log.may_gather());
    assert_eq!(sent(&log).1.len(), MOST_EVENTS);
}

#[test]
fn an_answer_from_before_an_append_is_no_loss() {
    let log = owned(1, Outline::default());
    push(&log, 1, 3);
    answer(&log, Verdict::Done, outline(1, 3));
    assert!(log.next_append().is_none(), "all is there");
    let asked = log.wants();
    let before = || Look {
        outline: Some(outline(1, 3)),
        whole: true,
        events: Vec::new(),
    };
    log.begin_work();
    push(&log, 1, 1);
    answer(&log, Verdict::Done, outline(1, 4));
    assert!(log.next_append().is_none(), "all is there");
    log.release(usize::MAX, false);
    assert_eq!(log.observe(before(), asked, &options()), Observed::Fine);
    assert!(
        log.begin_work() && log.next_append().is_none(),
        "nothing is made anew"
    );
    assert_eq!(
        log.observe(before(), log.wants(), &options()),
        Observed::Lost,
        "asked later, the same answer is one"
    );
}
