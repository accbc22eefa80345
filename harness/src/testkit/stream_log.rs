//! What bridges may rely on when they give events away.

use std::sync::Arc;

use bytes::Bytes;

use super::{RunStores, at, at_once, commit_of, end_in, new_run, node, run, thread};
use crate::runtime::runs::RunStatus;
use crate::runtime::runs::store::RunCommit;
use crate::runtime::stream_bridge::{
    EventData, EventId, LogBatch, LogOutline, LogPage, LogRange, StreamEvent, StreamLog,
    StreamLogError, TerminalKind,
};

/// One test per promise.
#[macro_export]
macro_rules! stream_log_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::stream_log]
            what_was_appended_is_read_from_any_place
            any_event_is_kept_as_it_is
            a_batch_may_come_again_and_overlap_others
            parts_of_a_run_are_kept_without_what_is_between_them
            the_end_is_told_after_the_last_event_and_once
            an_older_attempt_is_refused_and_writes_nothing
            events_of_an_earlier_attempt_may_be_appended_by_a_later_one
            a_stream_that_begins_anew_replaces_what_was_there
            a_long_run_is_read_page_by_page
            many_runs_append_at_once
            a_run_that_is_over_may_still_be_told_of_and_one_that_is_deleted_not
            the_log_goes_with_the_run_and_with_the_thread
        }
    };
}

/// Event number `seq` of an attempt.
pub fn logged(seq: u64, attempt: u32) -> StreamEvent {
    let data = Bytes::from(format!("[{seq},{attempt}]"));
    StreamEvent {
        id: EventId { seq, attempt },
        event: "values".into(),
        data: data.into(),
    }
}

/// A batch of these events, all of one attempt.
pub fn batch(of: &str, attempt: u32, numbers: std::ops::RangeInclusive<u64>) -> LogBatch {
    let before = numbers.start() - 1;
    LogBatch {
        run_id: run(of),
        attempt,
        before,
        events: numbers.map(|seq| logged(seq, attempt)).collect(),
        end: None,
    }
}

async fn admitted(open: impl AsyncFn() -> RunStores) -> RunStores {
    let stores = open().await;
    stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted");
    stores
}

async fn taken_over(stores: &RunStores) {
    stores
        .create
        .take_over(&node("n2"), at(9))
        .await
        .expect("looked")
        .expect("taken");
}

async fn append(stores: &RunStores, batch: LogBatch) {
    assert_eq!(stores.streams.append(batch).await, Ok(()));
}

async fn page(streams: &Arc<dyn StreamLog>, of: &str, next: u64) -> LogPage {
    streams.read(&run(of), next, 1_000).await.expect("read")
}

async fn ids(stores: &RunStores, next: u64) -> Vec<(u64, u32)> {
    page(&stores.streams, "r1", next)
        .await
        .events
        .iter()
        .map(|event| (event.id.seq, event.id.attempt))
        .collect()
}

async fn ranges(stores: &RunStores) -> Vec<(u64, u64, u32)> {
    let outline = stores.streams.outline(&run("r1")).await.expect("read");
    outline
        .ranges
        .iter()
        .map(|range| (range.first, range.last, range.attempt))
        .collect()
}

/// In order, without holes, and nothing where there is nothing.
pub async fn what_was_appended_is_read_from_any_place(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    assert!(
        stores
            .streams
            .outline(&run("r1"))
            .await
            .expect("read")
            .is_empty()
    );
    append(&stores, batch("r1", 1, 1..=3)).await;
    append(&stores, batch("r1", 1, 4..=6)).await;
    for next in 1..=6 {
        let expected: Vec<_> = (next..=6).map(|seq| logged(seq, 1)).collect();
        assert_eq!(
            page(&stores.streams, "r1", next).await,
            LogPage {
                events: expected,
                end: None
            }
        );
    }
    for (of, next) in [("r1", 7), ("r1", u64::MAX), ("r2", 1)] {
        assert_eq!(page(&stores.streams, of, next).await, LogPage::default());
    }
    assert_eq!(ranges(&stores).await, [(1, 6, 1)]);
    let outline = stores.streams.outline(&run("r1")).await;
    assert_eq!(
        outline,
        Ok(LogOutline {
            ranges: vec![LogRange {
                first: 1,
                last: 6,
                attempt: 1
            }],
            end: None
        })
    );
}

/// Names and data of any length, characters that some databases do not take, data in two pieces.
pub async fn any_event_is_kept_as_it_is(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    let data = [
        EventData::default(),
        Bytes::from_static(b"\0\xff\xfe'; --").into(),
        Bytes::from("x".repeat(700_000)).into(),
        EventData::with_tail(Bytes::from_static(b"{\"a\":"), Bytes::from("\u{1f980}}")),
    ];
    let names = ["values", "", "messages|tools:1\0", "\u{1f980}"];
    let events: Vec<_> = (1..)
        .zip(names.into_iter().zip(data))
        .map(|(seq, (name, data))| StreamEvent {
            id: EventId { seq, attempt: 1 },
            event: name.into(),
            data,
        })
        .collect();
    append(
        &stores,
        LogBatch {
            events: events.clone(),
            ..batch("r1", 1, 1..=1)
        },
    )
    .await;
    let mut read = Vec::new();
    while read.len() < events.len() {
        let page = page(&stores.streams, "r1", 1 + read.len() as u64).await;
        assert!(!page.events.is_empty());
        read.extend(page.events);
    }
    assert_eq!(read, events);
}

/// What is there stays as it is.
pub async fn a_batch_may_come_again_and_overlap_others(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    for numbers in [3..=5, 3..=5, 4..=4, 5..=8, 1..=4, 2..=9] {
        append(&stores, batch("r1", 1, numbers)).await;
    }
    let mut other = batch("r1", 1, 3..=10);
    other
        .events
        .iter_mut()
        .for_each(|event| event.event = "other".into());
    append(&stores, other).await;
    for seq in 1..=9 {
        assert_eq!(
            page(&stores.streams, "r1", seq).await.events[0],
            logged(seq, 1)
        );
    }
    assert_eq!(
        &*page(&stores.streams, "r1", 10).await.events[0].event,
        "other"
    );
    assert_eq!(ranges(&stores).await, [(1, 10, 1)]);
}

/// Each is read up to its end.
pub async fn parts_of_a_run_are_kept_without_what_is_between_them(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=2)).await;
    append(&stores, batch("r1", 1, 5..=6)).await;
    assert_eq!(ids(&stores, 1).await, [(1, 1), (2, 1)]);
    assert_eq!(ids(&stores, 3).await, []);
    assert_eq!(ids(&stores, 6).await, [(6, 1)]);
    assert_eq!(ranges(&stores).await, [(1, 2, 1), (5, 6, 1)]);
    // What was missing comes later, with what is there.
    append(&stores, batch("r1", 1, 1..=7)).await;
    assert_eq!(
        page(&stores.streams, "r1", 1).await.events,
        (1..=7).map(|seq| logged(seq, 1)).collect::<Vec<_>>()
    );
}

/// Also of a stream whose events are elsewhere; another end says nothing.
pub async fn the_end_is_told_after_the_last_event_and_once(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=3)).await;
    assert_eq!(page(&stores.streams, "r1", 1).await.end, None);
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::Error),
            ..batch("r1", 1, 3..=4)
        },
    )
    .await;
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::End),
            ..batch("r1", 1, 3..=4)
        },
    )
    .await;
    for next in [1, 4, 5] {
        assert_eq!(
            page(&stores.streams, "r1", next).await.end,
            Some(TerminalKind::Error),
            "from {next}"
        );
    }
    assert_eq!(page(&stores.streams, "r1", 6).await, LogPage::default());
    assert_eq!(
        stores.streams.outline(&run("r1")).await.expect("read").end,
        Some((4, TerminalKind::Error))
    );

    stores
        .create
        .admit(new_run("r2", "t2"))
        .await
        .expect("admitted");
    let only = LogBatch {
        run_id: run("r2"),
        attempt: 1,
        before: 7,
        events: vec![],
        end: Some(TerminalKind::Cancel),
    };
    assert_eq!(
        (
            stores.streams.append(only.clone()).await,
            stores.streams.append(only).await
        ),
        (Ok(()), Ok(()))
    );
    assert_eq!(
        page(&stores.streams, "r2", 8).await,
        LogPage {
            events: vec![],
            end: Some(TerminalKind::Cancel)
        }
    );
    assert_eq!(
        stores.streams.outline(&run("r2")).await,
        Ok(LogOutline {
            ranges: vec![],
            end: Some((7, TerminalKind::Cancel))
        })
    );
}

/// By the run, not by what the log has seen.
pub async fn an_older_attempt_is_refused_and_writes_nothing(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=2)).await;
    taken_over(&stores).await;
    let fenced = StreamLogError::Fenced {
        run_id: run("r1"),
        attempt: 1,
        current: 2,
    };
    assert_eq!(
        stores.streams.append(batch("r1", 1, 3..=4)).await,
        Err(fenced.clone())
    );
    let end = LogBatch {
        end: Some(TerminalKind::End),
        ..batch("r1", 1, 2..=2)
    };
    assert_eq!(stores.streams.append(end).await, Err(fenced));
    append(&stores, batch("r1", 2, 3..=3)).await;
    let page = page(&stores.streams, "r1", 1).await;
    assert_eq!(
        page,
        LogPage {
            events: vec![logged(1, 1), logged(2, 1), logged(3, 2)],
            end: None
        }
    );
    assert_eq!(ranges(&stores).await, [(1, 2, 1), (3, 3, 2)]);
}

/// By a node that has them from before it took the run up again.
pub async fn events_of_an_earlier_attempt_may_be_appended_by_a_later_one(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = admitted(open).await;
    taken_over(&stores).await;
    let events = vec![logged(4, 1), logged(5, 1), logged(6, 2)];
    let mixed = LogBatch {
        events,
        ..batch("r1", 2, 4..=6)
    };
    append(&stores, mixed.clone()).await;
    append(&stores, mixed).await;
    assert_eq!(ids(&stores, 4).await, [(4, 1), (5, 1), (6, 2)]);
    assert_eq!(ids(&stores, 5).await, [(5, 1), (6, 2)]);
}

/// And an end that was after it.
pub async fn a_stream_that_begins_anew_replaces_what_was_there(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=4)).await;
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::Error),
            ..batch("r1", 1, 5..=9)
        },
    )
    .await;
    taken_over(&stores).await;
    append(&stores, batch("r1", 2, 1..=2)).await;
    assert_eq!(ids(&stores, 1).await, [(1, 2), (2, 2)]);
    assert_eq!(
        stores.streams.outline(&run("r1")).await.expect("read").end,
        None
    );
    append(&stores, batch("r1", 2, 3..=3)).await;
    assert_eq!(ranges(&stores).await, [(1, 3, 2)]);
}

/// No page is much larger than was asked for, and none that could have events is empty.
pub async fn a_long_run_is_read_page_by_page(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    for first in (1..=3_000).step_by(250) {
        append(&stores, batch("r1", 1, first..=first + 249)).await;
    }
    let mut next = 1;
    while next <= 3_000 {
        let events = stores
            .streams
            .read(&run("r1"), next, 100)
            .await
            .expect("read")
            .events;
        assert!(
            (1..=100).contains(&events.len()),
            "{} from {next}",
            events.len()
        );
        for event in events {
            assert_eq!(event, logged(next, 1));
            next += 1;
        }
    }
    assert_eq!(ranges(&stores).await, [(1, 3_000, 1)]);
}

/// No run sees another's.
pub async fn many_runs_append_at_once(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 0..8 {
        stores
            .create
            .admit(new_run(&format!("r{n}"), &format!("t{n}")))
            .await
            .expect("admitted");
    }
    // Twice each, as when an answer was lost.
    let appends = (0..16).map(|n| {
        let streams = stores.streams.clone();
        async move {
            streams
                .append(batch(&format!("r{}", n % 8), 1, 1..=n % 8 + 1))
                .await
        }
    });
    assert!(
        at_once(appends)
            .await
            .into_iter()
            .all(|appended| appended == Ok(()))
    );
    for n in 0..8 {
        let events = page(&stores.streams, &format!("r{n}"), 1).await.events;
        assert_eq!(
            events,
            (1..=n + 1).map(|seq| logged(seq, 1)).collect::<Vec<_>>()
        );
    }
}

/// The end of a stream is told after the run's.
pub async fn a_run_that_is_over_may_still_be_told_of_and_one_that_is_deleted_not(
    open: impl AsyncFn() -> RunStores,
) {
    let stores = open().await;
    let record = stores
        .create
        .admit(new_run("r1", "t1"))
        .await
        .expect("admitted")
        .run;
    let end = Some(end_in(RunStatus::Error));
    stores
        .commit
        .commit(RunCommit {
            end,
            ..commit_of(&record)
        })
        .await
        .expect("ended");
    append(
        &stores,
        LogBatch {
            end: Some(TerminalKind::Error),
            ..batch("r1", 1, 1..=2)
        },
    )
    .await;
    assert_eq!(stores.delete.delete(&run("r1")).await, Ok(true));
    assert_eq!(
        stores.streams.append(batch("r1", 1, 3..=3)).await,
        Err(StreamLogError::Gone(run("r1")))
    );
    assert_eq!(
        stores.streams.append(batch("never", 1, 1..=1)).await,
        Err(StreamLogError::Gone(run("never")))
    );
}

/// Or before, when it is told to.
pub async fn the_log_goes_with_the_run_and_with_the_thread(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 1..=4 {
        let (id, on) = (format!("r{n}"), format!("t{n}"));
        let record = stores
            .create
            .admit(new_run(&id, &on))
            .await
            .expect("admitted")
            .run;
        append(&stores, batch(&id, 1, 1..=2)).await;
        stores
            .commit
            .commit(RunCommit {
                end: Some(end_in(RunStatus::Error)),
                ..commit_of(&record)
            })
            .await
            .expect("ended");
    }
    stores.delete.delete(&run("r1")).await.expect("deleted");
    stores
        .delete
        .delete_thread(&thread("t2"))
        .await
        .expect("deleted");
    assert_eq!(
        (
            stores.streams.forget(&run("r3")).await,
            stores.streams.forget(&run("r3")).await
        ),
        (Ok(()), Ok(()))
    );
    for (of, left) in [("r1", 0), ("r2", 0), ("r3", 0), ("r4", 2)] {
        assert_eq!(
            page(&stores.streams, of, 1).await.events.len(),
            left,
            "{of}"
        );
    }
}
