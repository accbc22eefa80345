//! Ends that only the store tells.

use super::super::RunLimits;
use super::super::bridge_kit::WatchedBridge;
use super::super::recovery::{LOST, ORPHAN_RECOVERED, end_orphan};
use super::super::registry::RunRegistry;
use super::super::store::{RunListQuery, RunQueryStore, RunStanding, StoreError};
use super::super::tests::{BEAT, as_user, facade, over, spec, wait_for_tokens};
use super::super::{RuntimeParts, WaitOutcome};
use super::*;
use crate::ids::{RunId, ThreadId};
use crate::runtime::actor_context::Owner;
use crate::runtime::stream_bridge::{EventName, StreamKey};
use async_trait::async_trait;
use bytes::Bytes;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test(start_paused = true)]
async fn a_stream_left_open_ends_when_the_store_says_that_the_run_has() {
    as_user(async {
        let facade = facade();
        let parts = facade.parts().clone();
        // Executed by another process: this one knows its row and its stream.
        let run = parts
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        parts
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
            "while it is active nothing is made up"
        );
        end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
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
        // Who comes back with a cursor gets nothing but the end.
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
async fn a_viewer_whom_nothing_reaches_any_more_gets_the_rest_from_the_bridge_before_a_gap_is_told()
{
    as_user(async {
        let facade = facade();
        let (run, _) = facade.create_and_wait(spec("finish")).await.unwrap();
        let registry = RunRegistry::new(facade.parts().ids.node_id(), RunLimits::default());
        let bridge = WatchedBridge::over(facade.parts().bridge.clone());
        let from = ResumeFrom::After(EventId { seq: 4, attempt: 1 });
        // Its answers may be lost, too.
        for lost in [0, 3] {
            bridge.sends_away.store(lost, Ordering::Relaxed);
            let items = until_stored_end(
                stream::pending().boxed(),
                from,
                registry.looks.at(&run.run_id, facade.parts()),
                bridge.clone(),
            );
            let items: Vec<_> = tokio::time::timeout(Duration::from_secs(60), items.collect())
                .await
                .expect("it ends");
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
        bridge.sends_away.store(u32::MAX, Ordering::Relaxed);
        let items = until_stored_end(
            stream::pending().boxed(),
            from,
            registry.looks.at(&run.run_id, facade.parts()),
            bridge,
        );
        let items: Vec<_> = tokio::time::timeout(Duration::from_secs(60), items.collect())
            .await
            .expect("it ends all the same");
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
async fn a_viewer_of_a_run_that_another_process_took_and_ended_sees_that_end() {
    for is_noticed_before in [false, true] {
        as_user(async {
            let facade = facade();
            facade.recover().await.unwrap();
            let (run, stream) = facade.create_and_stream(spec("hang"), BEAT).await.unwrap();
            wait_for_tokens(&facade, &run.run_id).await;
            let parts = facade.parts();
            let other = crate::testkit::node("other");
            parts
                .nodes
                .register(&other, Duration::from_secs(600))
                .await
                .unwrap();
            let taken = parts
                .create
                .take_over(&other, parts.clock.now())
                .await
                .unwrap()
                .unwrap();
            while is_noticed_before && facade.live_runs() > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            end_orphan(&taken.run, ORPHAN_RECOVERED, LOST, parts).await;
            let items =
                tokio::time::timeout(Duration::from_secs(60), stream.items.collect::<Vec<_>>())
                    .await
                    .expect("it ends");
            assert_eq!(
                items.last(),
                Some(&StreamItem::End(TerminalKind::Error)),
                "noticed before: {is_noticed_before}"
            );
        })
        .await;
    }
}

#[tokio::test]
async fn who_comes_back_to_a_run_whose_events_are_gone_gets_a_gap_and_its_end() {
    as_user(async {
        let facade = facade();
        let parts = facade.parts().clone();
        let run = parts
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
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
            "who saw nothing misses nothing"
        );
    })
    .await;
}

#[tokio::test]
async fn recovery_ends_the_stream_of_a_lost_run_where_it_stood() {
    as_user(async {
        let facade = facade();
        let parts = facade.parts().clone();
        let run = parts
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        parts
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
        facade.recover().await.unwrap();
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

/// Counts how often it is asked for a run.
#[derive(Debug)]
struct Counting(Arc<dyn RunQueryStore>, AtomicUsize);

#[async_trait]
impl RunQueryStore for Counting {
    async fn get(&self, run: &RunId, owner: &Owner) -> Result<Option<RunRecord>, StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.get(run, owner).await
    }

    async fn list(
        &self,
        thread: &ThreadId,
        query: &RunListQuery,
        owner: &Owner,
    ) -> Result<Vec<RunRecord>, StoreError> {
        self.0.list(thread, query, owner).await
    }

    async fn active(&self, thread: &ThreadId) -> Result<Option<RunRecord>, StoreError> {
        self.0.active(thread).await
    }

    async fn kept_values(&self, run: &RunId) -> Result<Option<Bytes>, StoreError> {
        self.0.kept_values(run).await
    }

    async fn standing(
        &self,
        thread: Option<&ThreadId>,
        owner: &Owner,
    ) -> Result<Vec<RunStanding>, StoreError> {
        self.0.standing(thread, owner).await
    }
}

#[tokio::test(start_paused = true)]
async fn many_viewers_of_a_silent_run_ask_the_store_as_one() {
    as_user(async {
        let parts = facade().parts().clone();
        let counting = Arc::new(Counting(parts.query.clone(), AtomicUsize::new(0)));
        let facade = over(RuntimeParts {
            query: counting.clone(),
            ..parts.clone()
        });
        let run = parts
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: run.attempt,
        };
        parts
            .bridge
            .publish(
                &key,
                EventName::Borrowed("values"),
                Bytes::from_static(b"{}").into(),
            )
            .await
            .unwrap();
        let mut streams = Vec::new();
        for n in 0..500 {
            streams.push(
                facade
                    .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
                    .await
                    .unwrap(),
            );
            // They come over ten seconds.
            tokio::time::sleep(Duration::from_millis(20)).await;
            if n == 0 {
                assert!(matches!(
                    streams[0].items.next().await,
                    Some(StreamItem::Event(_))
                ));
            }
        }
        let before = counting.1.load(Ordering::Relaxed);
        let silent = async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            counting.1.load(Ordering::Relaxed) - before
        };
        let views = futures_util::future::join_all(
            streams
                .into_iter()
                .map(|stream| stream.items.collect::<Vec<_>>()),
        );
        let ended = async {
            let asked = silent.await;
            end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
            asked
        };
        let (asked, views) = futures_util::future::join(ended, views).await;
        assert!((14..=31).contains(&asked), "{asked} looks in 30 seconds");
        assert!(
            views
                .iter()
                .all(|items| items.last() == Some(&StreamItem::End(TerminalKind::Error)))
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_who_wait_for_a_run_elsewhere_ask_the_store_as_one() {
    as_user(async {
        let parts = facade().parts().clone();
        let counting = Arc::new(Counting(parts.query.clone(), AtomicUsize::new(0)));
        let facade = over(RuntimeParts {
            query: counting.clone(),
            ..parts.clone()
        });
        let run = parts
            .create
            .admit(crate::testkit::new_run("left", "t1"))
            .await
            .unwrap()
            .run;
        let waits =
            futures_util::future::join_all((0..200).map(|_| facade.join_wait(None, &run.run_id)));
        let end = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            end_orphan(&run, ORPHAN_RECOVERED, LOST, &parts).await;
        };
        let (outcomes, ()) = futures_util::future::join(waits, end).await;
        assert!(
            outcomes
                .iter()
                .all(|outcome| matches!(outcome, Ok(WaitOutcome::Failed { .. })))
        );
        // Each asks once for its run, and ten times a second all together.
        let asked = counting.1.load(Ordering::Relaxed) - 200;
        assert!((45..=60).contains(&asked), "{asked} looks in 5 seconds");
    })
    .await;
}
