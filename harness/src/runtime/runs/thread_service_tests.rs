//! A thread as its viewers see it: over several runs, from now on or from a cursor.

use super::super::tests::{as_user, facade, spec, thread, wait_for_tokens};
use super::super::*;
use super::*;
use crate::ids::NodeId;
use crate::runtime::actor_context::{ActorContext, scope};
use crate::runtime::memory::{MemoryOptions, MemoryStreamBridge};
use crate::runtime::stream_bridge::StreamKey;
use crate::testkit::{new_run, node};

/// Reads until `runs` runs are done: the names of the events, `done` for the end of a run, and all ids.
async fn read(
    items: &mut BoxStream<'static, ThreadItem>,
    runs: usize,
) -> (Vec<String>, Vec<ThreadEventId>) {
    let (mut names, mut ids, mut done) = (Vec::new(), Vec::new(), 0);
    while done < runs {
        match items.next().await.expect("it goes on") {
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
async fn a_viewer_sees_run_after_run_and_can_come_back_anywhere() {
    as_user(async {
        let facade = facade();
        facade.create_and_wait(spec("finish")).await.unwrap();
        let mut now = facade
            .follow_thread(&thread(), ThreadCursor::Tail, Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(now.next().await, Some(ThreadItem::Heartbeat));
        for _ in 0..2 {
            facade.create_and_wait(spec("finish")).await.unwrap();
            assert_eq!(read(&mut now, 1).await.0, RUN);
        }
        let mut all = facade
            .follow_thread(&thread(), "-".parse().unwrap(), Duration::ZERO)
            .await
            .unwrap();
        let (names, ids) = read(&mut all, 3).await;
        assert_eq!(names, [RUN, RUN, RUN].concat());
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        for (n, id) in ids.iter().enumerate().filter(|(n, _)| *n < 14) {
            let mut rest = facade
                .follow_thread(&thread(), id.to_string().parse().unwrap(), Duration::ZERO)
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
async fn a_viewer_from_now_on_sees_only_the_rest_of_the_run_at_work() {
    as_user(async {
        let facade = facade();
        let run = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &run.run_id).await;
        let mut items = facade
            .follow_thread(&thread(), ThreadCursor::Tail, Duration::ZERO)
            .await
            .unwrap();
        let cancel = facade.cancel(None, &run.run_id, CancelAction::Interrupt, true);
        let (_, (names, _)) = tokio::join!(cancel, read(&mut items, 1));
        assert!(!names.contains(&"metadata".to_owned()), "{names:?}");
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_over_before_its_turn_hides_none_that_waits_before_it() {
    as_user(async {
        let facade = facade();
        let waiting = |prompt| RunSpec {
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
        let mut items = facade
            .follow_thread(&thread(), ThreadCursor::Tail, Duration::ZERO)
            .await
            .unwrap();
        facade
            .cancel(None, &first.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let mut done = Vec::new();
        while done.len() < 2 {
            if let ThreadItem::RunDone(_, run) = items.next().await.expect("it goes on") {
                done.push(run);
            }
        }
        assert_eq!(done, [first.run_id, second.run_id]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_user_sees_nothing_and_shutdown_ends_it() {
    let (facade, thread) = (facade(), thread());
    as_user(facade.create_and_wait(spec("finish")))
        .await
        .unwrap();
    let theirs = facade.follow_thread(&thread, ThreadCursor::START, Duration::from_secs(5));
    let mut theirs = scope(ActorContext::user("bob"), theirs).await.unwrap();
    assert_eq!(theirs.next().await, Some(ThreadItem::Heartbeat));
    let own = facade.follow_thread(&thread, ThreadCursor::START, Duration::ZERO);
    let mut own = as_user(own).await.unwrap();
    read(&mut own, 1).await;
    facade.parts().bridge.close().await;
    as_user(async {
        let _refused = facade.create_background(spec("finish")).await;
    })
    .await;
    assert_eq!(own.next().await, None);
}

#[test]
fn cursors_are_digits_or_the_start() {
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
        ("123-4294967295", after(123, 0, DONE)),
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

/// Publishes `words` in the name of an attempt, each as an event of its own.
async fn say(facade: &RunsFacade, run: &RunRecord, words: &[&'static str]) {
    let key = StreamKey {
        run_id: run.run_id.clone(),
        attempt: run.attempt,
    };
    for word in words {
        facade
            .parts()
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

/// A run of two attempts, three events of the first and one of the second; both belong to other processes.
async fn taken_over(facade: &RunsFacade) -> RunRecord {
    let parts = facade.parts();
    let lives = Duration::from_secs(600);
    let (first, second): (NodeId, NodeId) = (node("n1"), node("n2"));
    parts.nodes.register(&second, lives).await.unwrap();
    let run = parts
        .create
        .admit(store::NewRun {
            user_id: Some("ann".to_owned()),
            owner: first,
            ..new_run("r1", "t1")
        })
        .await
        .unwrap()
        .run;
    say(facade, &run, &["one", "two", "three"]).await;
    let taken = parts
        .create
        .take_over(&second, parts.clock.now())
        .await
        .unwrap()
        .unwrap()
        .run;
    assert_eq!((&taken.run_id, taken.attempt), (&run.run_id, 2));
    say(facade, &taken, &["again"]).await;
    taken
}

/// The next `count` events after `cursor`.
async fn events_after(
    facade: &RunsFacade,
    cursor: &str,
    count: usize,
) -> (Vec<String>, Vec<String>) {
    let items = facade
        .follow_thread(&thread(), cursor.parse().unwrap(), Duration::ZERO)
        .await
        .unwrap();
    let events = items.filter_map(async |item| match item {
        ThreadItem::Event(id, event) => Some((event.event.into_owned(), id.to_string())),
        _ => None,
    });
    let read = events.take(count).collect::<Vec<_>>();
    tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .expect("they come")
        .into_iter()
        .unzip()
}

#[tokio::test(start_paused = true)]
async fn a_viewer_of_a_lost_attempt_gets_what_it_missed_of_it_and_the_next_one() {
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
        // Identities that were given before they named the attempt.
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
async fn a_viewer_whose_place_is_gone_goes_on_with_the_oldest_event_there_is() {
    as_user(async {
        let bridge = Arc::new(
            MemoryStreamBridge::new(MemoryOptions {
                max_events: 2,
                ..MemoryOptions::default()
            })
            .unwrap(),
        );
        let facade = super::super::tests::over(RuntimeParts {
            bridge,
            ..facade().parts().clone()
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
