//! Tests of subscriptions while events are unavailable, temporarily or permanently.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::runs::*;
use crate::stream_bridge::{EventId, TerminalKind};
use crate::test_support::*;

/// Returns an ended run, and the bridge with its events.
async fn ended() -> (RunsFacade, Arc<RecordingBridge>, RunRecord) {
    let ports = facade().runtime().ports().clone();
    let bridge = RecordingBridge::over(ports.bridge.clone());
    let facade = over(RuntimePorts {
        bridge: bridge.clone(),
        ..ports
    });
    let (run, _) = facade.create_and_wait(spec("finish")).await.unwrap();
    (facade, bridge, run)
}

#[tokio::test(start_paused = true)]
async fn resubscription_during_bridge_outage_misses_nothing() {
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
            bridge.rejected_subscribes.store(3, Ordering::Relaxed);
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
async fn run_ending_during_bridge_outage_is_retried() {
    as_user(async {
        let (facade, bridge, run) = ended().await;
        // The record as it was read just before.
        let running = RunRecord {
            status: RunStatus::Running,
            ..run
        };
        bridge.rejected_subscribes.store(3, Ordering::Relaxed);
        let runtime = Runtime::new(facade.runtime().ports().clone(), RunLimits::default());
        let stream = subscribe(&running, ResumeFrom::Start, BEAT, &runtime)
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
async fn permanent_bridge_outage_still_reports_end() {
    as_user(async {
        let (facade, bridge, run) = ended().await;
        bridge
            .rejected_subscribes
            .store(u32::MAX, Ordering::Relaxed);
        let started = Instant::now();
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
            started.elapsed() < Duration::from_secs(15),
            "{:?}",
            started.elapsed()
        );
        // A subscriber without a cursor has no missing events.
        let started = Instant::now();
        facade
            .join_stream(None, &run.run_id, ResumeFrom::Tail, BEAT)
            .await
            .unwrap();
        assert!(started.elapsed().is_zero(), "{:?}", started.elapsed());
    })
    .await;
}
