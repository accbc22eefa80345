//! Tests of thread subscriptions: over several runs, without and with a cursor.

use super::*;
use crate::in_memory::{InMemoryOptions, InMemoryStreamBridge};
use crate::runs::*;
use crate::stream_bridge::StreamKey;
use crate::streaming::ThreadItem;
use crate::streaming::thread_cursor::END_SEQ;
use crate::test_support::*;
use crate::testkit::{new_run, node};
use deerflow_core::actor_context::{ActorContext, scope};
use deerflow_core::ids::NodeId;

/// Reads until `runs` runs have ended. Returns the names of the events, with `done` for the end of
/// a run, and all ids.
async fn read(
    items: &mut BoxStream<'static, ThreadItem>,
    runs: usize,
) -> (Vec<String>, Vec<ThreadEventId>) {
    let (mut names, mut ids, mut done) = (Vec::new(), Vec::new(), 0);
    while done < runs {
        match items.next().await.expect("the stream continues") {
            ThreadItem::Event(id, event) => {
                names.push(event.event.into_owned());
                ids.push(id);
            }
            ThreadItem::RunDone(id, _) => {
                names.push("done".to_owned());
                ids.push(id);
                done += 1;
            }
            ThreadItem::Heartbeat => {}
        }
    }
    (names, ids)
}

const RUN: [&str; 7] = [
    "metadata", "values", "messages", "messages", "updates", "values", "done",
];

#[tokio::test(start_paused = true)]
async fn thread_stream_follows_runs_and_resumes_anywhere() {
    as_user(async {
        let facade = facade();
        facade.create_and_wait(spec("finish")).await.unwrap();
        let mut now = ThreadStreams::new(facade.runtime())
            .follow(&thread(), ThreadCursor::Tail, Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(now.next().await, Some(ThreadItem::Heartbeat));
        for _ in 0..2 {
            facade.create_and_wait(spec("finish")).await.unwrap();
            assert_eq!(read(&mut now, 1).await.0, RUN);
        }
        let mut all = ThreadStreams::new(facade.runtime())
            .follow(&thread(), "-".parse().unwrap(), Duration::ZERO)
            .await
            .unwrap();
        let (names, ids) = read(&mut all, 3).await;
        assert_eq!(names, [RUN, RUN, RUN].concat());
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        for (n, id) in ids.iter().enumerate().filter(|(n, _)| *n < 14) {
            let mut rest = ThreadStreams::new(facade.runtime())
                .follow(&thread(), id.to_string().parse().unwrap(), Duration::ZERO)
                .await
                .unwrap();
            let (seen, _) = read(
                &mut rest,
                names[n + 1..].iter().filter(|name| *name == "done").count(),
            )
            .await;
            assert_eq!(seen, names[n + 1..], "after {n}");
        }
    })
    .await;
}

#[tokio::test]
async fn tail_subscriber_gets_rest_of_active_run() {
    as_user(async {
        let facade = facade();
        let run = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &run.run_id).await;
        let mut items = ThreadStreams::new(facade.runtime())
            .follow(&thread(), ThreadCursor::Tail, Duration::ZERO)
            .await
            .unwrap();
        let cancel = facade.cancel(None, &run.run_id, CancelAction::Interrupt, true);
        let (_, (names, _)) = tokio::join!(cancel, read(&mut items, 1));
        assert!(!names.contains(&"metadata".to_owned()), "{names:?}");
    })
    .await;
}

#[tokio::test]
async fn cancelled_queued_run_does_not_hide_earlier_run() {
    as_user(async {
        let facade = facade();
        let waiting = |prompt| RunRequest {
            multitask: MultitaskStrategy::Enqueue,
            ..spec(prompt)
        };
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let second = facade.create_background(waiting("finish")).await.unwrap();
        let third = facade.create_background(waiting("finish")).await.unwrap();
        facade
            .cancel(None, &third.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let mut items = ThreadStreams::new(facade.runtime())
            .follow(&thread(), ThreadCursor::Tail, Duration::ZERO)
            .await
            .unwrap();
        facade
            .cancel(None, &first.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let mut done = Vec::new();
        while done.len() < 2 {
            if let ThreadItem::RunDone(_, run) = items.next().await.expect("the stream continues") {
                done.push(run);
            }
        }
        assert_eq!(done, [first.run_id, second.run_id]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn thread_stream_hides_other_users_and_ends_at_shutdown() {
    let (facade, thread) = (facade(), thread());
    as_user(facade.create_and_wait(spec("finish")))
        .await
        .unwrap();
    let streams = ThreadStreams::new(facade.runtime());
    let theirs = streams.follow(&thread, ThreadCursor::START, Duration::from_secs(5));
    let mut theirs = scope(ActorContext::user("bob"), theirs).await.unwrap();
    assert_eq!(theirs.next().await, Some(ThreadItem::Heartbeat));
    let own = streams.follow(&thread, ThreadCursor::START, Duration::ZERO);
    let mut own = as_user(own).await.unwrap();
    read(&mut own, 1).await;
    facade.runtime().ports().bridge.close().await;
    as_user(async {
        let _refused = facade.create_background(spec("finish")).await;
    })
    .await;
    assert_eq!(own.next().await, None);
}

/// Creates a process that has started a run whose stream is not open, and a subscription to it.
async fn unopened() -> (RunsFacade, RunRecord, BoxStream<'static, ThreadItem>) {
    let executing = facade();
    let run = executing.create_background(spec("hang")).await.unwrap();
    wait_for_tokens(&executing, &run.run_id).await;
    let process = over(executing.runtime().ports().clone());
    let registry = &process.runtime().registry;
    registry
        .active
        .get_or_insert(&run.run_id)
        .set_status(RunStatus::Starting);
    let items = ThreadStreams::new(process.runtime())
        .follow(&thread(), ThreadCursor::START, Duration::from_secs(5))
        .await
        .unwrap();
    (process, run, items)
}

#[tokio::test(start_paused = true)]
async fn unopened_stream_sends_heartbeats_until_it_opens() {
    as_user(async {
        let (process, run, mut items) = unopened().await;
        let begun = Instant::now();
        let mut next = async || tokio::time::timeout(Duration::from_secs(60), items.next()).await;
        assert_eq!(next().await, Ok(Some(ThreadItem::Heartbeat)));
        assert_eq!(next().await, Ok(Some(ThreadItem::Heartbeat)));
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
        let active = process.runtime().registry.active(&run.run_id).unwrap();
        active.opened.cancel();
        assert!(matches!(next().await, Ok(Some(ThreadItem::Event(..)))));
        assert_eq!(begun.elapsed(), Duration::from_secs(10));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn unopened_stream_ends_at_shutdown() {
    as_user(async {
        let (process, _, mut items) = unopened().await;
        process.runtime().ports().tasks.token().cancel();
        let end = tokio::time::timeout(Duration::from_secs(60), items.next()).await;
        assert_eq!(end, Ok(None));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_of_another_process_is_read_at_once() {
    as_user(async {
        let executing = facade();
        let reading = over(executing.runtime().ports().clone());
        lifecycle(&reading).recover().await.unwrap();
        let mut items = ThreadStreams::new(reading.runtime())
            .follow(&thread(), ThreadCursor::START, Duration::from_millis(500))
            .await
            .unwrap();
        assert_eq!(items.next().await, Some(ThreadItem::Heartbeat));
        let begun = Instant::now();
        executing.create_background(spec("finish")).await.unwrap();
        read(&mut items, 1).await;
        assert!(
            begun.elapsed() < Duration::from_millis(200),
            "{:?}",
            begun.elapsed()
        );
    })
    .await;
}

#[test]
fn cursor_parses_digits_or_start() {
    let after = |begun, attempt, seq| {
        Ok(ThreadCursor::After(ThreadEventId {
            begun,
            attempt,
            seq,
        }))
    };
    for (text, expected) in [
        ("123-8589934596", after(123, 2, 4)),
        ("123-4", after(123, 0, 4)),
        ("123-4294967295", after(123, 0, END_SEQ)),
        ("123", after(123, 0, 0)),
        ("-", Ok(ThreadCursor::START)),
    ] {
        assert_eq!(text.parse(), expected, "{text}");
    }
    assert_eq!(
        ThreadEventId {
            begun: 123,
            attempt: 2,
            seq: 4
        }
        .to_string(),
        "123-8589934596"
    );
    for bad in [
        "-1",
        "",
        "x",
        "1-",
        "1-2-3",
        "+1",
        "99999999999999999999-1",
        "1-18446744073709551616",
    ] {
        assert!(bad.parse::<ThreadCursor>().is_err(), "{bad}");
    }
}

/// Publishes each of `words` as an event of an attempt.
async fn publish(facade: &RunsFacade, run: &RunRecord, words: &[&'static str]) {
    let key = StreamKey {
        run_id: run.run_id.clone(),
        attempt: run.attempt,
    };
    for word in words {
        facade
            .runtime()
            .ports()
            .bridge
            .publish(
                &key,
                (*word).into(),
                bytes::Bytes::from_static(b"{}").into(),
            )
            .await
            .unwrap();
    }
}

/// Creates a run with two attempts in other processes: three events of the first, one of the
/// second.
async fn taken_over(facade: &RunsFacade) -> RunRecord {
    let ports = facade.runtime().ports();
    let lives = Duration::from_secs(600);
    let (first, second): (NodeId, NodeId) = (node("n1"), node("n2"));
    ports.nodes.register(&second, lives).await.unwrap();
    let run = ports
        .create
        .admit(store::NewRun {
            user_id: Some("ann".to_owned()),
            owner: first,
            ..new_run("r1", "t1")
        })
        .await
        .unwrap()
        .run;
    publish(facade, &run, &["one", "two", "three"]).await;
    let claimed = ports
        .create
        .take_over(&second, ports.clock.now())
        .await
        .unwrap()
        .unwrap()
        .run;
    assert_eq!((&claimed.run_id, claimed.attempt), (&run.run_id, 2));
    publish(facade, &claimed, &["again"]).await;
    claimed
}

/// Reads the next `count` events after `cursor`.
async fn events_after(
    facade: &RunsFacade,
    cursor: &str,
    count: usize,
) -> (Vec<String>, Vec<String>) {
    let items = ThreadStreams::new(facade.runtime())
        .follow(&thread(), cursor.parse().unwrap(), Duration::ZERO)
        .await
        .unwrap();
    let events = items.filter_map(async |item| match item {
        ThreadItem::Event(id, event) => Some((event.event.into_owned(), id.to_string())),
        _ => None,
    });
    let read = events.take(count).collect::<Vec<_>>();
    tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .expect("the events arrive")
        .into_iter()
        .unzip()
}

#[tokio::test(start_paused = true)]
async fn subscriber_gets_missed_events_of_both_attempts() {
    as_user(async {
        let facade = facade();
        let run = taken_over(&facade).await;
        let (all, ids) = events_after(&facade, "-", 4).await;
        assert_eq!(all, ["one", "two", "three", "again"]);
        for seen in 1..4 {
            assert_eq!(
                events_after(&facade, &ids[seen - 1], 4 - seen).await.0,
                all[seen..],
                "after {}",
                ids[seen - 1]
            );
        }
        // Ids of an older format, without the attempt.
        let begun = run.created_at.timestamp_micros();
        for (seq, expected) in [
            (1, &["two", "three", "again"][..]),
            (3, &["again"]),
            (4, &["again"]),
        ] {
            assert_eq!(
                events_after(&facade, &format!("{begun}-{seq}"), expected.len())
                    .await
                    .0,
                expected,
                "after {seq}"
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn evicted_cursor_resumes_at_oldest_event() {
    as_user(async {
        let bridge = Arc::new(
            InMemoryStreamBridge::new(InMemoryOptions {
                max_events: 2,
                ..InMemoryOptions::default()
            })
            .unwrap(),
        );
        let facade = over(RuntimePorts {
            bridge,
            ..facade().runtime().ports().clone()
        });
        let run = taken_over(&facade).await;
        let begun = run.created_at.timestamp_micros();
        assert_eq!(
            events_after(&facade, &format!("{begun}-1"), 2).await.0,
            ["three", "again"]
        );
    })
    .await;
}
