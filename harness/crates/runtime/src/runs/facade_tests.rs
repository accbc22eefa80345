//! Tests of the facade over in-memory stores, with scripted agents.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::in_memory::runtime_in_memory;
use crate::ports::EventQuery;
use crate::runs::*;
use crate::stream_bridge::{ResumeFrom, StreamItem, TerminalKind};
use crate::test_support::*;
use deerflow_core::actor_context::Owner;

#[tokio::test]
async fn run_streams_events_in_order_and_stores_result() {
    as_user(async {
        let facade = facade();
        let (record, stream) = facade
            .create_and_stream(spec("finish"), BEAT)
            .await
            .unwrap();
        assert_eq!(record.status, RunStatus::Starting);
        let (names, end) = drain(stream).await;
        assert_eq!(
            names,
            [
                "metadata", "values", "messages", "messages", "updates", "values"
            ]
        );
        assert_eq!(end, Some(StreamItem::End(TerminalKind::End)));
        let stored = facade.get_run(None, &record.run_id).await.unwrap().unwrap();
        assert_eq!(stored.status, RunStatus::Success);
        let head = facade
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages().len(), 2);
        assert_eq!(head.state.title(), Some("A title"));
        assert!(head.meta.next.is_empty());
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
        let types: Vec<_> = rows
            .iter()
            .map(|row| row.event.event_type.as_str())
            .collect();
        assert_eq!(
            types,
            ["run.start", "llm.human.input", "run.end", "run.delivery"]
        );
        assert_eq!(rows[2].event.content, json!({ "title": "A title" }));
        assert_eq!(
            rows[3].event.content,
            json!({ "presented": 0, "paths": [], "by_tool": {} })
        );
    })
    .await;
}

#[tokio::test]
async fn late_subscriber_gets_all_events_or_rest_after_cursor() {
    as_user(async {
        let facade = facade();
        let (record, stream) = facade
            .create_and_stream(spec("finish"), BEAT)
            .await
            .unwrap();
        let (first, _) = drain(stream).await;
        let again = facade
            .join_stream(Some(&thread()), &record.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert_eq!(drain(again).await.0, first);
        let rest = facade
            .join_stream(
                None,
                &record.run_id,
                ResumeFrom::parse("4-1").unwrap(),
                BEAT,
            )
            .await
            .unwrap();
        assert_eq!(drain(rest).await.0, first[4..]);
    })
    .await;
}

#[tokio::test]
async fn failing_or_panicking_agent_frees_thread() {
    as_user(async {
        let facade = facade();
        for (assistant, class) in [("fail", "GraphRecursionError"), ("panic", "InternalError")] {
            let (record, stream) = facade
                .create_and_stream(spec(assistant), BEAT)
                .await
                .unwrap();
            let (names, end) = drain(stream).await;
            assert_eq!(
                names.last().map(String::as_str),
                Some("error"),
                "{assistant}"
            );
            assert_eq!(end, Some(StreamItem::End(TerminalKind::Error)));
            assert_eq!(
                facade
                    .get_run(None, &record.run_id)
                    .await
                    .unwrap()
                    .unwrap()
                    .status,
                RunStatus::Error
            );
            let (_, outcome) = facade.create_and_wait(spec(assistant)).await.unwrap();
            assert!(
                matches!(&outcome, WaitOutcome::Failed { name, .. } if name == class),
                "{outcome:?}"
            );
        }
        assert!(facade.create_and_wait(spec("finish")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn interrupt_ends_run_and_thread_is_interrupted() {
    as_user(async {
        let facade = facade();
        let (record, outcome) = facade.create_and_wait(spec("ask")).await.unwrap();
        let WaitOutcome::Values(values) = outcome else {
            panic!("{outcome:?}")
        };
        let values: Value = serde_json::from_slice(&values.into_bytes()).unwrap();
        assert_eq!(values["__interrupt__"][0]["value"], "which?");
        assert_eq!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .unwrap()
                .status,
            RunStatus::Success
        );
        let head = facade
            .runtime()
            .ports()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.meta.next[0].interrupts[0]["id"], "q1");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn silent_agent_times_out() {
    as_user(async {
        let facade = facade();
        let (record, outcome) = facade.create_and_wait(spec("hang")).await.unwrap();
        assert!(
            matches!(outcome, WaitOutcome::Failed { ref name, .. } if name == "TimeoutError"),
            "{outcome:?}"
        );
        assert_eq!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .unwrap()
                .status,
            RunStatus::Timeout
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn agent_with_slow_tool_does_not_time_out() {
    as_user(async {
        let (record, outcome) = facade().create_and_wait(spec("work")).await.unwrap();
        assert!(
            matches!(outcome, WaitOutcome::Values(_)),
            "{record:?} {outcome:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn run_without_agent_ends_and_input_joins_thread() {
    as_user(async {
        let facade = facade();
        // Admitted by a process that died at once. Its assistant no longer exists.
        let ports = facade.runtime().ports().clone();
        let orphan =
            crate::testkit::with_request(crate::testkit::new_run("left", "t1"), |request| {
                request.presentation = spec("finish").presentation
            });
        let orphan = ports.create.admit(orphan).await.unwrap().run;
        assert_eq!(lifecycle(&facade).recover().await.unwrap(), 1);
        let ended = facade.get_run(None, &orphan.run_id).await.unwrap().unwrap();
        assert_eq!(
            (ended.status, ended.stop_reason()),
            (RunStatus::Error, Some(StopReason::OrphanRecovered))
        );
        let head = ports
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages()[0].content.text(), "hello");
        let stream = facade
            .join_stream(None, &ended.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        assert_eq!(
            drain(stream).await,
            (
                vec!["error".to_owned()],
                Some(StreamItem::End(TerminalKind::Error))
            )
        );
        assert!(facade.create_and_wait(spec("finish")).await.is_ok());
    })
    .await;
}

/// Store that writes every commit, but loses the reply to every second one.
#[derive(Debug)]
struct LosesReplies(
    crate::in_memory::InMemoryStores,
    std::sync::atomic::AtomicU32,
);

#[async_trait]
impl store::RunCommitStore for LosesReplies {
    async fn commit(&self, commit: Arc<store::RunCommit>) -> Result<(), store::CommitError> {
        store::RunCommitStore::commit(&self.0, commit).await?;
        let lost = self
            .1
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed)
            .is_multiple_of(2);
        if lost {
            Err(store::StoreError::Unavailable("the reply was lost".to_owned()).into())
        } else {
            Ok(())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn commit_with_lost_reply_is_written_once() {
    as_user(async {
        let mut ports = runtime_in_memory(Arc::new(Agents::default())).unwrap();
        let stores = crate::in_memory::InMemoryStores::new();
        let shared = Arc::new(stores.clone());
        ports.commit = Arc::new(LosesReplies(stores, std::sync::atomic::AtomicU32::new(0)));
        ports.checkpointer = shared.clone();
        ports.create = shared.clone();
        ports.query = shared.clone();
        ports.events = shared;
        let facade = RunsFacade::new(ports, RunLimits::default());
        let (record, outcome) = facade.create_and_wait(spec("finish")).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
        assert_eq!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .unwrap()
                .status,
            RunStatus::Success
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
        let types: Vec<_> = rows
            .iter()
            .map(|row| row.event.event_type.as_str())
            .collect();
        assert_eq!(
            types,
            ["run.start", "llm.human.input", "run.end", "run.delivery"]
        );
        assert!(facade.create_and_wait(spec("finish")).await.is_ok());
    })
    .await;
}
