//! How the ends of runs on which nobody works are told.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::super::bridge_kit::WatchedBridge;
use super::super::recovery::tests::{after, process, stored, stuck};
use super::super::tests::{BEAT, as_user, drain, facade, over, spec, wait_for_tokens};
use super::super::*;
use super::*;
use crate::runtime::stream_bridge::{ResumeFrom, StreamItem};

fn watched(process: &RunsFacade) -> (RunsFacade, Arc<WatchedBridge>) {
    let bridge = WatchedBridge::over(process.parts().bridge.clone());
    (
        over(RuntimeParts {
            bridge: bridge.clone(),
            ..process.parts().clone()
        }),
        bridge,
    )
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_begun_is_ended_by_who_took_its_run_over() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        before
            .parts()
            .create
            .request_cancel(
                &run.run_id,
                CancelAction::Interrupt,
                before.parts().clock.now(),
            )
            .await
            .unwrap();
        let (after, bridge) = watched(&after(&before));
        after.recover().await.unwrap();
        let stream = after
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await.1,
            Some(StreamItem::End(TerminalKind::Cancel))
        );
        // A cancel knows nothing of what a durable log has beside the bridge.
        assert_eq!(*bridge.ends.lock(), ["Cancel by attempt 2"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_was_never_begun_is_cancelled() {
    as_user(async {
        let (facade, bridge) = watched(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let waiting = RunSpec {
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
async fn a_bridge_that_is_out_of_order_delays_no_start() {
    as_user(async {
        let before = process();
        let run = stuck(
            &before,
            RunSpec {
                recovery: Some(Recovery::Fail),
                ..spec("any")
            },
        )
        .await;
        let (after, bridge) = watched(&after(&before));
        bridge.hangs.store(true, Ordering::Relaxed);
        let recovered = tokio::time::timeout(Duration::from_secs(1), after.recover()).await;
        assert_eq!(
            recovered.expect("it does not wait for the bridge").unwrap(),
            1
        );
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_bridge_that_is_out_of_order_delays_no_run_that_displaces_others() {
    as_user(async {
        let (facade, bridge) = watched(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        facade
            .create_background(RunSpec {
                multitask: MultitaskStrategy::Enqueue,
                ..spec("finish")
            })
            .await
            .unwrap();
        bridge.hangs.store(true, Ordering::Relaxed);
        let displacing = facade.create_background(RunSpec {
            multitask: MultitaskStrategy::Interrupt,
            ..spec("finish")
        });
        let made = tokio::time::timeout(Duration::from_secs(1), displacing).await;
        assert!(made.expect("it does not wait for the bridge").is_ok());
    })
    .await;
}

/// Writes down what it hears, and of which attempt.
#[derive(Debug, Default)]
struct Listener(Mutex<Vec<(&'static str, u32)>>);

#[async_trait]
impl RunObserver for Listener {
    async fn observe(&self, event: &RunLifecycleEvent) {
        let heard = match event.kind {
            LifecycleKind::RunStarted => "started",
            LifecycleKind::RunCompleted { .. } => "completed",
            LifecycleKind::RunFailed { .. } => "failed",
            LifecycleKind::RunCancelled { .. } => "cancelled",
            LifecycleKind::RunLeft => "left",
            LifecycleKind::ThreadStatusUpdated(_) => return,
        };
        self.0.lock().push((heard, event.attempt));
    }
}

impl Listener {
    fn at(process: &RunsFacade) -> (RunsFacade, Arc<Self>) {
        let listener = Arc::new(Self::default());
        (
            over(RuntimeParts {
                observer: listener.clone(),
                ..process.parts().clone()
            }),
            listener,
        )
    }

    async fn hears(&self, expected: &[(&'static str, u32)]) {
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
async fn an_observer_hears_how_a_run_ended_that_was_not_recovered() {
    for (told_to_stop, expected) in [(false, "failed"), (true, "cancelled")] {
        as_user(async {
            let before = process();
            let run = stuck(
                &before,
                RunSpec {
                    recovery: Some(Recovery::Fail),
                    ..spec("any")
                },
            )
            .await;
            if told_to_stop {
                before
                    .parts()
                    .create
                    .request_cancel(
                        &run.run_id,
                        CancelAction::Interrupt,
                        before.parts().clock.now(),
                    )
                    .await
                    .unwrap();
            }
            let (after, listener) = Listener::at(&after(&before));
            after.recover().await.unwrap();
            listener.hears(&[(expected, 2)]).await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_observer_hears_of_a_run_that_is_cancelled_while_it_waits() {
    as_user(async {
        let (facade, listener) = Listener::at(&facade());
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let second = facade
            .create_background(RunSpec {
                multitask: MultitaskStrategy::Enqueue,
                ..spec("finish")
            })
            .await
            .unwrap();
        facade
            .cancel(None, &second.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        listener.hears(&[("started", 1), ("cancelled", 1)]).await;
    })
    .await;
}

#[tokio::test]
async fn an_observer_hears_of_a_run_that_leaves() {
    as_user(async {
        let (before, listener) = Listener::at(&process());
        stuck(&before, spec("any")).await;
        before.parts().tasks.token().cancel();
        before.hand_over_all();
        listener.hears(&[("started", 1), ("left", 1)]).await;
    })
    .await;
}
