//! Tests of cancels, and of runs that displace or reject each other.

use crate::ports::EventQuery;
use crate::runs::*;
use crate::stream_bridge::{StreamItem, TerminalKind};
use crate::test_support::*;
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::kwargs;

#[tokio::test]
async fn busy_thread_rejects_run_and_names_active_one() {
    as_user(async {
        let facade = facade();
        let first = facade.create_background(spec("hang")).await.unwrap();
        let refused = facade.create_background(spec("finish")).await.unwrap_err();
        assert!(matches!(refused, RunError::Admit(store::AdmitError::ThreadBusy { active, .. }) if active == first.run_id));
    })
    .await;
}

#[tokio::test]
async fn interrupt_strategy_keeps_streamed_text() {
    as_user(async {
        let facade = facade();
        let first = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &first.run_id).await;
        let (_, outcome) = facade
            .create_and_wait(RunRequest {
                multitask: MultitaskStrategy::Interrupt,
                ..spec("finish")
            })
            .await
            .unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two", "hello", "one two"]);
        let stored = facade.get_run(None, &first.run_id).await.unwrap().unwrap();
        assert_eq!(stored.status, RunStatus::Interrupted);
        let head = facade
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert!(head.state.messages()[1].flag(kwargs::INCOMPLETE));
    })
    .await;
}

#[tokio::test]
async fn rollback_restores_thread() {
    as_user(async {
        let facade = facade();
        facade.create_and_wait(spec("finish")).await.unwrap();
        let second = facade.create_background(spec("hang")).await.unwrap();
        wait_for_tokens(&facade, &second.run_id).await;
        let (_, outcome) = facade
            .create_and_wait(RunRequest {
                multitask: MultitaskStrategy::Rollback,
                ..spec("finish")
            })
            .await
            .unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two", "hello", "one two"]);
        let stored = facade.get_run(None, &second.run_id).await.unwrap().unwrap();
        assert_eq!(
            (stored.status, stored.stop_reason.as_deref()),
            (RunStatus::Error, Some("rolled_back"))
        );
        let rows = facade
            .runtime()
            .ports()
            .events
            .list(
                &thread(),
                &EventQuery {
                    limit: 100,
                    ..EventQuery::default()
                },
                &Owner::Auto,
            )
            .await
            .unwrap();
        assert!(rows.iter().all(|row| row.event.run_id != second.run_id));
    })
    .await;
}

#[tokio::test]
async fn cancel_is_idempotent_but_rejected_after_success() {
    as_user(async {
        let facade = facade();
        let (record, stream) = facade.create_and_stream(spec("hang"), BEAT).await.unwrap();
        let cancelled = facade
            .cancel(
                Some(&thread()),
                &record.run_id,
                CancelAction::Interrupt,
                true,
            )
            .await
            .unwrap();
        assert_eq!(cancelled.status, RunStatus::Interrupted);
        assert_eq!(
            drain(stream).await.1,
            Some(StreamItem::End(TerminalKind::Cancel))
        );
        assert!(
            facade
                .cancel(None, &record.run_id, CancelAction::Interrupt, false)
                .await
                .is_ok()
        );
        let (done, _) = facade.create_and_wait(spec("finish")).await.unwrap();
        let refused = facade
            .cancel(None, &done.run_id, CancelAction::Interrupt, false)
            .await
            .unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("run {} is not cancellable (status: success)", done.run_id)
        );
    })
    .await;
}

#[tokio::test]
async fn wait_returns_previous_state_after_rollback() {
    as_user(async {
        let facade = facade();
        let (record, outcome) = RunWaits::new(facade.runtime())
            .create(spec("hang"))
            .await
            .unwrap();
        wait_for_tokens(&facade, &record.run_id).await;
        facade
            .cancel(None, &record.run_id, CancelAction::Rollback, true)
            .await
            .unwrap();
        let first = outcome.await;
        assert!(matches!(first, WaitOutcome::Values(_)), "{first:?}");
        assert!(matches!(
            facade.join_wait(None, &record.run_id).await,
            Ok(WaitOutcome::Values(_))
        ));
    })
    .await;
}
