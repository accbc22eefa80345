//! Tests of how the ends of orphaned runs are published.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::*;
use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, StreamItem};
use crate::test_support::*;

fn with_recording_bridge(process: &RunsFacade) -> (RunsFacade, Arc<RecordingBridge>) {
    let bridge = RecordingBridge::over(process.runtime().ports().bridge.clone());
    (
        over(RuntimePorts {
            bridge: bridge.clone(),
            ..process.runtime().ports().clone()
        }),
        bridge,
    )
}

#[tokio::test(start_paused = true)]
async fn takeover_ends_stream_of_earlier_attempt() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        before
            .runtime()
            .ports()
            .create
            .request_cancel(
                &run.run_id,
                CancelAction::Interrupt,
                before.runtime().ports().clock.now(),
            )
            .await
            .unwrap();
        let (after, bridge) = with_recording_bridge(&after(&before));
        lifecycle(&after).recover().await.unwrap();
        let stream = after
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await.1,
            Some(StreamItem::End(TerminalKind::Cancel))
        );
        // A cancel does not read the durable log of the bridge.
        assert_eq!(*bridge.ends.lock(), ["Cancel by attempt 2"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stream_of_unstarted_run_is_cancelled() {
    as_user(async {
        let (facade, bridge) = with_recording_bridge(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let waiting = RunRequest {
            multitask: MultitaskStrategy::Enqueue,
            ..spec("finish")
        };
        let (second, stream) = facade.create_and_stream(waiting, BEAT).await.unwrap();
        facade
            .cancel(None, &second.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await,
            (vec![], Some(StreamItem::End(TerminalKind::Cancel)))
        );
        assert_eq!(*bridge.ends.lock(), ["cancelled"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn failing_bridge_does_not_delay_startup() {
    as_user(async {
        let before = process();
        let run = create_stuck(
            &before,
            RunRequest {
                recovery: Some(Recovery::Fail),
                ..spec("any")
            },
        )
        .await;
        let (after, bridge) = with_recording_bridge(&after(&before));
        bridge.blocks_terminal.store(true, Ordering::Relaxed);
        let recovered =
            tokio::time::timeout(Duration::from_secs(1), lifecycle(&after).recover()).await;
        assert_eq!(recovered.expect("does not wait for the bridge").unwrap(), 1);
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn failing_bridge_does_not_delay_displacing_run() {
    as_user(async {
        let (facade, bridge) = with_recording_bridge(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        facade
            .create_background(RunRequest {
                multitask: MultitaskStrategy::Enqueue,
                ..spec("finish")
            })
            .await
            .unwrap();
        bridge.blocks_terminal.store(true, Ordering::Relaxed);
        let displacing = facade.create_background(RunRequest {
            multitask: MultitaskStrategy::Interrupt,
            ..spec("finish")
        });
        let created = tokio::time::timeout(Duration::from_secs(1), displacing).await;
        assert!(created.expect("does not wait for the bridge").is_ok());
    })
    .await;
}

/// Observer that records events with their attempts.
#[derive(Debug, Default)]
struct RecordingObserver(Mutex<Vec<(&'static str, u32)>>);

#[async_trait]
impl RunObserver for RecordingObserver {
    async fn observe(&self, event: &RunLifecycleEvent) {
        let name = match event.kind {
            LifecycleKind::RunStarted => "started",
            LifecycleKind::RunCompleted { .. } => "completed",
            LifecycleKind::RunFailed { .. } => "failed",
            LifecycleKind::RunCancelled { .. } => "cancelled",
            LifecycleKind::RunLeft => "left",
            LifecycleKind::ThreadStatusUpdated(_) => return,
        };
        self.0.lock().push((name, event.attempt));
    }
}

impl RecordingObserver {
    fn at(process: &RunsFacade) -> (RunsFacade, Arc<Self>) {
        let observer = Arc::new(Self::default());
        (
            over(RuntimePorts {
                observer: observer.clone(),
                ..process.runtime().ports().clone()
            }),
            observer,
        )
    }

    async fn assert_events(&self, expected: &[(&'static str, u32)]) {
        let all = async {
            while self.0.lock().len() < expected.len() {
                tokio::task::yield_now().await;
            }
        };
        let _late = tokio::time::timeout(Duration::from_secs(30), all).await;
        assert_eq!(*self.0.lock(), expected);
    }
}

#[tokio::test]
async fn observer_is_notified_of_unrecovered_run_end() {
    for (cancel_requested, expected) in [(false, "failed"), (true, "cancelled")] {
        as_user(async {
            let before = process();
            let run = create_stuck(
                &before,
                RunRequest {
                    recovery: Some(Recovery::Fail),
                    ..spec("any")
                },
            )
            .await;
            if cancel_requested {
                before
                    .runtime()
                    .ports()
                    .create
                    .request_cancel(
                        &run.run_id,
                        CancelAction::Interrupt,
                        before.runtime().ports().clock.now(),
                    )
                    .await
                    .unwrap();
            }
            let (after, observer) = RecordingObserver::at(&after(&before));
            lifecycle(&after).recover().await.unwrap();
            observer.assert_events(&[(expected, 2)]).await;
        })
        .await;
    }
}

#[tokio::test]
async fn observer_is_notified_of_cancelled_queued_run() {
    as_user(async {
        let (facade, observer) = RecordingObserver::at(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let second = facade
            .create_background(RunRequest {
                multitask: MultitaskStrategy::Enqueue,
                ..spec("finish")
            })
            .await
            .unwrap();
        facade
            .cancel(None, &second.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        observer
            .assert_events(&[("started", 1), ("cancelled", 1)])
            .await;
    })
    .await;
}

#[tokio::test]
async fn observer_is_notified_of_released_run() {
    as_user(async {
        let (before, observer) = RecordingObserver::at(&process());
        create_stuck(&before, spec("any")).await;
        before.runtime().ports().tasks.token().cancel();
        lifecycle(&before).release_all();
        observer.assert_events(&[("started", 1), ("left", 1)]).await;
    })
    .await;
}
