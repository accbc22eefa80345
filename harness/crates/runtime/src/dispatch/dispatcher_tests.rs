//! Tests of queued runs: after other runs, delayed, across a restart, and cancelled.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::StreamExt;

use crate::ports::{AdmitError, RunListQuery};
use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, StreamItem, TerminalKind};
use crate::test_support::*;
use crate::testkit::at;
use deerflow_core::actor_context::Owner;
use deerflow_core::clock::ManualClock;

fn queued(assistant: &str) -> RunRequest {
    RunRequest {
        multitask: MultitaskStrategy::Enqueue,
        ..spec(assistant)
    }
}

async fn status(facade: &RunsFacade, run: &RunRecord) -> RunStatus {
    facade
        .get_run(None, &run.run_id)
        .await
        .unwrap()
        .unwrap()
        .status
}

/// Starts a run that occupies the thread until it is cancelled.
async fn busy(facade: &RunsFacade) -> RunRecord {
    let run = facade.create_background(queued("hang")).await.unwrap();
    wait_for_tokens(facade, &run.run_id).await;
    run
}

#[tokio::test]
async fn queued_run_starts_after_previous_run() {
    as_user(async {
        let facade = facade();
        let first = busy(&facade).await;
        let (second, stream) = facade
            .create_and_stream(queued("finish"), BEAT)
            .await
            .unwrap();
        let (third, outcome) = RunWaits::new(facade.runtime())
            .create(queued("finish"))
            .await
            .unwrap();
        assert_eq!(
            (second.status, third.status),
            (RunStatus::Pending, RunStatus::Pending)
        );
        assert_eq!(lifecycle(&facade).live_runs(), 1);
        facade
            .cancel(None, &first.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let (names, end) = drain(stream).await;
        assert_eq!(
            names,
            [
                "metadata", "values", "messages", "messages", "updates", "values"
            ]
        );
        assert_eq!(end, Some(StreamItem::End(TerminalKind::End)));
        assert_eq!(
            texts(&outcome.await),
            ["hello", "one two", "hello", "one two", "hello", "one two"]
        );
        assert_eq!(status(&facade, &third).await, RunStatus::Success);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn queued_run_stream_sends_heartbeats() {
    as_user(async {
        let facade = facade();
        busy(&facade).await;
        let (_, mut stream) = facade
            .create_and_stream(queued("finish"), BEAT)
            .await
            .unwrap();
        assert_eq!(stream.items.next().await, Some(StreamItem::Heartbeat));
        assert_eq!(stream.items.next().await, Some(StreamItem::Heartbeat));
    })
    .await;
}

#[tokio::test]
async fn queued_run_fails_when_its_checkpoint_is_deleted() {
    as_user(async {
        let facade = facade();
        let (first, outcome) = RunWaits::new(facade.runtime())
            .create(queued("finish"))
            .await
            .unwrap();
        outcome.await;
        let checkpointer = &facade.runtime().ports().checkpointer;
        let checkpoint_id = checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap()
            .meta
            .checkpoint_id;
        let second = busy(&facade).await;
        let fork = RunRequest {
            checkpoint: Some(CheckpointRef {
                checkpoint_id: checkpoint_id.clone(),
            }),
            ..queued("finish")
        };
        let (third, stream) = facade.create_and_stream(fork, BEAT).await.unwrap();
        checkpointer
            .delete_run(&thread(), &first.run_id)
            .await
            .unwrap();
        facade
            .cancel(None, &second.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await.1,
            Some(StreamItem::End(TerminalKind::Error))
        );
        let third = facade.get_run(None, &third.run_id).await.unwrap().unwrap();
        assert!(
            third
                .error
                .as_ref()
                .is_some_and(|error| error.contains(checkpoint_id.as_str())),
            "{third:?}"
        );
        assert_eq!(third.error_name(), "CheckpointNotFoundError");
    })
    .await;
}

#[tokio::test]
async fn cancelled_queued_run_ends_without_start() {
    as_user(async {
        let facade = facade();
        let first = busy(&facade).await;
        let (second, stream) = facade
            .create_and_stream(queued("finish"), BEAT)
            .await
            .unwrap();
        let cancelled = facade
            .cancel(None, &second.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(cancelled.status, RunStatus::Interrupted);
        assert_eq!(
            drain(stream).await,
            (vec![], Some(StreamItem::End(TerminalKind::Cancel)))
        );
        facade
            .cancel(None, &first.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        let head = facade
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages().len(), 2);
        assert!(facade.create_and_wait(queued("finish")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn interrupt_strategy_ends_queued_runs() {
    as_user(async {
        let facade = facade();
        let first = busy(&facade).await;
        let second = facade.create_background(queued("finish")).await.unwrap();
        let (_, outcome) = facade
            .create_and_wait(RunRequest {
                multitask: MultitaskStrategy::Interrupt,
                ..spec("finish")
            })
            .await
            .unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two", "hello", "one two"]);
        assert_eq!(
            (
                status(&facade, &first).await,
                status(&facade, &second).await
            ),
            (RunStatus::Interrupted, RunStatus::Interrupted)
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn delayed_run_starts_on_time_and_thread_is_busy() {
    as_user(async {
        let clock = ManualClock::starting_at(at(0));
        let facade = over(RuntimePorts {
            clock: Arc::new(clock.clone()),
            ..facade().runtime().ports().clone()
        });
        let late = RunRequest {
            delay: Duration::from_millis(30),
            ..queued("finish")
        };
        let (record, stream) = facade
            .create_and_stream(late, Duration::ZERO)
            .await
            .unwrap();
        assert!(record.status == RunStatus::Pending && record.created_at > record.updated_at);
        let busy = facade.create_background(spec("finish")).await.unwrap_err();
        assert!(
            matches!(busy, RunError::Admit(AdmitError::ThreadBusy { .. })),
            "{busy:?}"
        );
        clock.advance(TimeDelta::milliseconds(30));
        assert_eq!(
            drain(stream).await.1,
            Some(StreamItem::End(TerminalKind::End))
        );
    })
    .await;
}

#[tokio::test]
async fn queued_runs_start_in_order_after_restart() {
    as_user(async {
        let before = facade();
        let hang = RunRequest {
            recovery: Some(Recovery::Fail),
            ..queued("hang")
        };
        let first = before.create_background(hang).await.unwrap();
        while before
            .runtime()
            .ports()
            .query
            .get(&first.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap()
            .status
            != RunStatus::Running
        {
            tokio::task::yield_now().await;
        }
        let second = before.create_background(queued("finish")).await.unwrap();
        let third = before.create_background(queued("fail")).await.unwrap();
        // The process dies: it does not write from now on.
        before.runtime().ports().tasks.token().cancel();
        let after = over(before.runtime().ports().clone());
        assert_eq!(lifecycle(&after).recover().await.unwrap(), 1);
        let outcome = after.join_wait(None, &third.run_id).await.unwrap();
        assert!(matches!(outcome, WaitOutcome::Failed { .. }), "{outcome:?}");
        let listed = after
            .list_runs(
                &thread(),
                &RunListQuery {
                    limit: 9,
                    ..RunListQuery::default()
                },
            )
            .await
            .unwrap();
        let listed: Vec<_> = listed
            .into_iter()
            .map(|run| (run.run_id, run.status))
            .collect();
        let expected = [
            (third, RunStatus::Error),
            (second, RunStatus::Success),
            (first, RunStatus::Error),
        ];
        assert_eq!(listed, expected.map(|(run, status)| (run.run_id, status)));
        let stream = after
            .join_stream(None, &listed[1].0, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await.0.first().map(String::as_str),
            Some("metadata")
        );
    })
    .await;
}

#[tokio::test]
async fn queued_run_without_agent_fails_and_next_starts() {
    as_user(async {
        let facade = facade();
        let first = busy(&facade).await;
        let (second, lost) = RunWaits::new(facade.runtime())
            .create(queued("once"))
            .await
            .unwrap();
        let (_, third) = RunWaits::new(facade.runtime())
            .create(queued("finish"))
            .await
            .unwrap();
        facade
            .cancel(None, &first.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert!(matches!(lost.await, WaitOutcome::Failed { .. }));
        assert_eq!(status(&facade, &second).await, RunStatus::Error);
        assert!(matches!(third.await, WaitOutcome::Values(_)));
    })
    .await;
}
