//! Tests of runs whose end is in the store only.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::definition::StopReason;
use crate::kernel::StatusPollers;
use crate::stream_bridge::{EventName, StreamKey};
use crate::termination::{LOST_TEXT, end_orphan};
use crate::test_support::*;

#[tokio::test(start_paused = true)]
async fn open_stream_ends_by_stored_end() {
    as_user(async {
        let facade = facade();
        let ports = facade.runtime().ports().clone();
        // Executed by another process; this one has access to its row and its stream.
        let run = ports
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        ports
            .bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from_static(b"{}").into(),
            )
            .await
            .unwrap();
        let mut stream = facade
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert!(matches!(
            stream.items.next().await,
            Some(StreamItem::Event(_))
        ));
        assert_eq!(
            stream.items.next().await,
            Some(StreamItem::Heartbeat),
            "no end is synthesized while the run is active"
        );
        end_orphan(&run, StopReason::OrphanRecovered, LOST_TEXT, &ports).await;
        let began = Instant::now();
        let rest: Vec<_> = stream.items.collect().await;
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
        let [
            StreamItem::Gap(gap),
            StreamItem::Event(error),
            StreamItem::End(TerminalKind::Error),
        ] = &rest[..]
        else {
            panic!("{rest:?}")
        };
        assert_eq!(gap.requested_event_id.as_deref(), Some("1-1"));
        assert_eq!((error.id.seq, &*error.event), (2, "error"));
        // A subscriber that reconnects with a cursor receives only the end.
        let seen = ResumeFrom::After(EventId { seq: 1, attempt: 1 });
        let again = facade
            .join_stream(None, &run.run_id, seen, BEAT)
            .await
            .unwrap();
        assert_eq!(
            again
                .items
                .filter(|item| std::future::ready(*item != StreamItem::Heartbeat))
                .collect::<Vec<_>>()
                .await,
            rest
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_stream_reads_rest_from_bridge_before_gap() {
    as_user(async {
        let facade = facade();
        let (run, _) = facade.create_and_wait(spec("finish")).await.unwrap();
        let pollers = StatusPollers::default();
        let bridge = RecordingBridge::over(facade.runtime().ports().bridge.clone());
        let from = ResumeFrom::After(EventId { seq: 4, attempt: 1 });
        // Replies may be lost too.
        for lost in [0, 3] {
            bridge.rejected_subscribes.store(lost, Ordering::Relaxed);
            let items = with_store_fallback(
                stream::pending().boxed(),
                from,
                pollers.for_run(&run.run_id, facade.runtime().ports()),
                bridge.clone(),
            );
            let items: Vec<_> = tokio::time::timeout(Duration::from_secs(60), items.collect())
                .await
                .expect("the stream ends");
            let [
                StreamItem::Event(fifth),
                StreamItem::Event(_),
                StreamItem::End(TerminalKind::End),
            ] = &items[..]
            else {
                panic!("{lost} lost: {items:?}")
            };
            assert_eq!(fifth.id.seq, 5);
        }
        bridge
            .rejected_subscribes
            .store(u32::MAX, Ordering::Relaxed);
        let items = with_store_fallback(
            stream::pending().boxed(),
            from,
            pollers.for_run(&run.run_id, facade.runtime().ports()),
            bridge,
        );
        let items: Vec<_> = tokio::time::timeout(Duration::from_secs(60), items.collect())
            .await
            .expect("the stream ends too");
        assert!(
            matches!(
                &items[..],
                [StreamItem::Gap(_), StreamItem::End(TerminalKind::End)]
            ),
            "{items:?}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn subscriber_sees_end_by_another_process() {
    for is_noticed_first in [false, true] {
        as_user(async {
            let facade = facade();
            lifecycle(&facade).recover().await.unwrap();
            let (run, stream) = facade.create_and_stream(spec("hang"), BEAT).await.unwrap();
            wait_for_tokens(&facade, &run.run_id).await;
            let ports = facade.runtime().ports();
            let other = crate::testkit::node("other");
            ports
                .nodes
                .register(&other, Duration::from_secs(600))
                .await
                .unwrap();
            let claimed = ports
                .create
                .take_over(&other, ports.clock.now())
                .await
                .unwrap()
                .unwrap();
            while is_noticed_first && lifecycle(&facade).live_runs() > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            end_orphan(&claimed.run, StopReason::OrphanRecovered, LOST_TEXT, ports).await;
            let items =
                tokio::time::timeout(Duration::from_secs(60), stream.items.collect::<Vec<_>>())
                    .await
                    .expect("the stream ends");
            assert_eq!(
                items.last(),
                Some(&StreamItem::End(TerminalKind::Error)),
                "noticed before: {is_noticed_first}"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn resubscription_without_events_gets_gap_and_end() {
    as_user(async {
        let facade = facade();
        let ports = facade.runtime().ports().clone();
        let run = ports
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        end_orphan(&run, StopReason::OrphanRecovered, LOST_TEXT, &ports).await;
        let seen = EventId { seq: 7, attempt: 1 };
        let stream = facade
            .join_stream(None, &run.run_id, ResumeFrom::After(seen), BEAT)
            .await
            .unwrap();
        let items: Vec<_> = stream.items.collect().await;
        let [
            StreamItem::Gap(gap),
            StreamItem::Event(error),
            StreamItem::End(TerminalKind::Error),
        ] = &items[..]
        else {
            panic!("{items:?}")
        };
        assert_eq!(
            (gap.requested_event_id.as_deref(), error.id.seq),
            (Some("7-1"), 8)
        );
        let stream = facade
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let items: Vec<_> = stream.items.collect().await;
        assert!(
            matches!(
                items[..],
                [StreamItem::Event(_), StreamItem::End(TerminalKind::Error)]
            ),
            "a subscriber without events misses nothing"
        );
    })
    .await;
}

#[tokio::test]
async fn recovery_ends_stream_at_its_last_event() {
    as_user(async {
        let facade = facade();
        let ports = facade.runtime().ports().clone();
        let run = ports
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        ports
            .bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from_static(b"{}").into(),
            )
            .await
            .unwrap();
        let stream = facade
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        lifecycle(&facade).recover().await.unwrap();
        let items: Vec<_> = stream.items.collect().await;
        let [
            StreamItem::Event(_),
            StreamItem::Event(error),
            StreamItem::End(TerminalKind::Error),
        ] = &items[..]
        else {
            panic!("{items:?}")
        };
        assert_eq!((error.id.seq, &*error.event), (2, "error"));
    })
    .await;
}
