//! Viewers of runs whose events cannot be had, for a moment or for good.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::bridge_kit::WatchedBridge;
use super::super::tests::{BEAT, as_user, drain, facade, over, spec};
use super::super::*;
use super::*;
use crate::runtime::stream_bridge::{EventId, TerminalKind};

/// A run that is over, and the bridge with its events.
async fn ended() -> (RunsFacade, Arc<WatchedBridge>, RunRecord) {
    let parts = facade().parts().clone();
    let bridge = WatchedBridge::over(parts.bridge.clone());
    let facade = over(RuntimeParts {
        bridge: bridge.clone(),
        ..parts
    });
    let (run, _) = facade.create_and_wait(spec("finish")).await.unwrap();
    (facade, bridge, run)
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_while_the_bridge_is_away_for_a_moment_misses_nothing() {
    as_user(async {
        let (facade, bridge, run) = ended().await;
        for (from, expected) in [
            (
                ResumeFrom::After(EventId { seq: 4, attempt: 1 }),
                &["updates", "values"][..],
            ),
            (
                ResumeFrom::Start,
                &[
                    "metadata", "values", "messages", "messages", "updates", "values",
                ],
            ),
        ] {
            bridge.sends_away.store(3, Ordering::Relaxed);
            let stream = facade
                .join_stream(None, &run.run_id, from, BEAT)
                .await
                .unwrap();
            let (names, last) = drain(stream).await;
            assert_eq!(
                (&names[..], last),
                (
                    &expected
                        .iter()
                        .map(|name| (*name).to_owned())
                        .collect::<Vec<_>>()[..],
                    Some(StreamItem::End(TerminalKind::End))
                )
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_the_bridge_is_away_is_waited_for_as_one_that_was_over() {
    as_user(async {
        let (facade, bridge, run) = ended().await;
        // As it was read a moment before.
        let running = RunRecord {
            status: RunStatus::Running,
            ..run
        };
        bridge.sends_away.store(3, Ordering::Relaxed);
        let registry = RunRegistry::new(facade.parts().ids.node_id(), RunLimits::default());
        let stream = subscribe(&running, ResumeFrom::Start, BEAT, &registry, facade.parts())
            .await
            .unwrap();
        let (names, last) = drain(stream).await;
        assert_eq!(
            (names.len(), last),
            (6, Some(StreamItem::End(TerminalKind::End))),
            "{names:?}"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_stays_away_hides_no_end() {
    as_user(async {
        let (facade, bridge, run) = ended().await;
        bridge.sends_away.store(u32::MAX, Ordering::Relaxed);
        let asked = Instant::now();
        let seen = ResumeFrom::After(EventId { seq: 4, attempt: 1 });
        let items: Vec<_> = facade
            .join_stream(None, &run.run_id, seen, BEAT)
            .await
            .unwrap()
            .items
            .collect()
            .await;
        assert!(
            matches!(
                &items[..],
                [StreamItem::Gap(_), StreamItem::End(TerminalKind::End)]
            ),
            "{items:?}"
        );
        assert!(
            asked.elapsed() < Duration::from_secs(15),
            "{:?}",
            asked.elapsed()
        );
        // Whoever wants nothing from before misses nothing.
        let asked = Instant::now();
        facade
            .join_stream(None, &run.run_id, ResumeFrom::Tail, BEAT)
            .await
            .unwrap();
        assert!(asked.elapsed().is_zero(), "{:?}", asked.elapsed());
    })
    .await;
}
