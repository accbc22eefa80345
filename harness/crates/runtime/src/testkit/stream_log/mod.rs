//! Contract of the durable stream log.

mod lifecycle;

use std::sync::Arc;

use bytes::Bytes;

use super::{RunStores, at, at_once, new_run, node, run};
use crate::stream_bridge::{
    EventData, EventId, LogBatch, LogOutline, LogPage, LogRange, StreamEvent, StreamLog,
    StreamLogError, TerminalKind,
};

pub use lifecycle::{
    end_is_reported_once_after_last_event, finished_run_accepts_appends_and_deleted_run_does_not,
    log_is_deleted_with_run_and_thread,
};

/// Generates one test per guarantee.
#[macro_export]
macro_rules! stream_log_suite {
    ($attrs:tt $open:expr) => {
        $crate::promises! { $attrs $open, [$crate::testkit::stream_log]
            appended_events_are_read_from_any_position
            any_event_is_stored_unchanged
            repeated_and_overlapping_batches_are_idempotent
            disjoint_ranges_are_stored_separately
            end_is_reported_once_after_last_event
            older_attempt_is_fenced
            later_attempt_may_append_events_of_earlier_one
            restarted_stream_replaces_old_events
            long_run_is_read_in_pages
            many_runs_append_concurrently
            finished_run_accepts_appends_and_deleted_run_does_not
            log_is_deleted_with_run_and_thread
        }
    };
}

/// Returns event number `seq` of an attempt.
pub fn logged(seq: u64, attempt: u32) -> StreamEvent {
    let data = Bytes::from(format!("[{seq},{attempt}]"));
    StreamEvent {
        id: EventId { seq, attempt },
        event: "values".into(),
        data: data.into(),
    }
}

/// Returns a batch of these events, all of one attempt.
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

async fn take_over(stores: &RunStores) {
    stores
        .create
        .take_over(&node("n2"), at(9))
        .await
        .expect("no store error")
        .expect("claimed");
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

/// Events are read in order, without holes; a page without events is empty.
pub async fn appended_events_are_read_from_any_position(open: impl AsyncFn() -> RunStores) {
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

/// Stored unchanged: names and data of any length, characters that some databases reject, and data
/// in two pieces.
pub async fn any_event_is_stored_unchanged(open: impl AsyncFn() -> RunStores) {
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

/// Stored events are not changed.
pub async fn repeated_and_overlapping_batches_are_idempotent(open: impl AsyncFn() -> RunStores) {
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

/// Each range is read up to its end.
pub async fn disjoint_ranges_are_stored_separately(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=2)).await;
    append(&stores, batch("r1", 1, 5..=6)).await;
    assert_eq!(ids(&stores, 1).await, [(1, 1), (2, 1)]);
    assert_eq!(ids(&stores, 3).await, []);
    assert_eq!(ids(&stores, 6).await, [(6, 1)]);
    assert_eq!(ranges(&stores).await, [(1, 2, 1), (5, 6, 1)]);
    // The missing events arrive later, together with stored ones.
    append(&stores, batch("r1", 1, 1..=7)).await;
    assert_eq!(
        page(&stores.streams, "r1", 1).await.events,
        (1..=7).map(|seq| logged(seq, 1)).collect::<Vec<_>>()
    );
}

/// An append is compared with the run's attempt, not with the events of the log.
pub async fn older_attempt_is_fenced(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    append(&stores, batch("r1", 1, 1..=2)).await;
    take_over(&stores).await;
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

/// A node may still have events of an earlier attempt of its own.
pub async fn later_attempt_may_append_events_of_earlier_one(open: impl AsyncFn() -> RunStores) {
    let stores = admitted(open).await;
    take_over(&stores).await;
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

/// An end that followed the old events is replaced too.
pub async fn restarted_stream_replaces_old_events(open: impl AsyncFn() -> RunStores) {
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
    take_over(&stores).await;
    append(&stores, batch("r1", 2, 1..=2)).await;
    assert_eq!(ids(&stores, 1).await, [(1, 2), (2, 2)]);
    assert_eq!(
        stores.streams.outline(&run("r1")).await.expect("read").end,
        None
    );
    append(&stores, batch("r1", 2, 3..=3)).await;
    assert_eq!(ranges(&stores).await, [(1, 3, 2)]);
}

/// No page is much larger than requested, and none is empty if events exist.
pub async fn long_run_is_read_in_pages(open: impl AsyncFn() -> RunStores) {
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

/// Each run has only its own events.
pub async fn many_runs_append_concurrently(open: impl AsyncFn() -> RunStores) {
    let stores = open().await;
    for n in 0..8 {
        stores
            .create
            .admit(new_run(&format!("r{n}"), &format!("t{n}")))
            .await
            .expect("admitted");
    }
    // Each twice, as if a response was lost.
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
