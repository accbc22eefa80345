//! Tests of the ends of runs while the store fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream, AssistantInfo,
    EventReceiver, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::checkpoint::PendingTask;
use crate::definition::{Durability, RunRequest, RunStatus, StoreError};
use crate::in_memory::runtime_in_memory;
use crate::ports::{CommitError, RunCommit, RunCommitStore, RuntimePorts};
use crate::runs::{RunWaits, RunsFacade};
use crate::stream_bridge::{StreamItem, TerminalKind};
use crate::streaming::WaitOutcome;
use crate::test_support::*;
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;

/// Store that fails selected commits.
#[derive(Debug)]
struct FailingStore {
    store: Arc<dyn RunCommitStore>,
    fails: Mutex<fn(&RunCommit) -> Option<StoreError>>,
}

#[async_trait]
impl RunCommitStore for FailingStore {
    async fn commit(&self, commit: Arc<RunCommit>) -> Result<(), CommitError> {
        let refused = (*self.fails.lock())(&commit);
        match refused {
            Some(error) => Err(error.into()),
            None => self.store.commit(commit).await,
        }
    }
}

fn away(_: &RunCommit) -> Option<StoreError> {
    Some(StoreError::Unavailable("away".to_owned()))
}

/// Agent that takes five steps, one per second.
#[derive(Debug)]
struct FiveSteps;

impl Agent for FiveSteps {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            let mut state = input.state;
            for steps in 1..=5 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let update = StateUpdate::messages([Message::ai(steps.to_string())
                    .with(|body| body.id = Some(ctx.ids.message_id()))]);
                state.apply(update.clone(), &*ctx.ids)?;
                let next = if steps < 5 {
                    vec![PendingTask::new(format!("task-{steps}"), "model")]
                } else {
                    vec![]
                };
                let (node, update, state) =
                    ("model".to_owned(), Some(update), Arc::new(state.clone()));
                ctx.sink.emit(AgentEvent::Step(StepEvent {
                    node,
                    update,
                    state,
                    next,
                    machine: json!({}),
                    steps,
                    checkpoint: true,
                }));
            }
            Ok(AgentOutcome {
                kind: StopKind::Completed,
                stop_reason: None,
            })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned()]
    }
}

#[async_trait]
impl AgentResolver for FiveSteps {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(FiveSteps))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

fn with_failing_store(
    fails: fn(&RunCommit) -> Option<StoreError>,
) -> (RunsFacade, Arc<FailingStore>) {
    with_failing_store_over(facade().runtime().ports().clone(), fails)
}

fn with_failing_store_over(
    ports: RuntimePorts,
    fails: fn(&RunCommit) -> Option<StoreError>,
) -> (RunsFacade, Arc<FailingStore>) {
    let commit = Arc::new(FailingStore {
        store: ports.commit.clone(),
        fails: Mutex::new(fails),
    });
    (
        over(RuntimePorts {
            commit: commit.clone(),
            ..ports
        }),
        commit,
    )
}

async fn saved(facade: &RunsFacade) -> Vec<String> {
    let head = facade
        .runtime()
        .ports()
        .checkpointer
        .get(&thread(), None)
        .await
        .unwrap();
    head.iter()
        .flat_map(|head| head.state.messages())
        .map(|message| message.content.text())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn waiting_for_store_stops_on_cancel() {
    as_user(async {
        let (facade, _) = with_failing_store(away);
        let run = facade
            .create_background(RunRequest {
                durability: Durability::Sync,
                ..spec("finish")
            })
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(lifecycle(&facade).live_runs(), 1);
        let cancelled_at = Instant::now();
        lifecycle(&facade).release_all();
        while lifecycle(&facade).live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            cancelled_at.elapsed() < Duration::from_secs(5),
            "{:?}",
            cancelled_at.elapsed()
        );
        let stored = facade
            .runtime()
            .ports()
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (stored.status, stored.attempt),
            (RunStatus::Starting, 1),
            "a process takes the run over"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn end_keeps_steps_after_long_store_outage() {
    as_user(async {
        let (facade, commit) = with_failing_store(away);
        let (run, outcome) = RunWaits::new(facade.runtime())
            .create(spec("finish"))
            .await
            .unwrap();
        let mut outcome = Box::pin(outcome);
        assert!(
            tokio::time::timeout(Duration::from_secs(600), &mut outcome)
                .await
                .is_err(),
            "the run may not end yet"
        );
        *commit.fails.lock() = |_| None;
        assert_eq!(texts(&outcome.await), ["hello", "one two"]);
        assert_eq!(saved(&facade).await, ["hello", "one two"]);
        assert_eq!(
            facade
                .get_run(None, &run.run_id)
                .await
                .unwrap()
                .unwrap()
                .status,
            RunStatus::Success
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rejected_steps_fail_run_and_keep_input() {
    as_user(async {
        let (facade, _) = with_failing_store(|commit| {
            (commit.checkpoints.len() > 1).then(|| StoreError::NotWritable("too large".to_owned()))
        });
        let (run, outcome) = facade.create_and_wait(spec("finish")).await.unwrap();
        assert!(
            matches!(&outcome, WaitOutcome::Failed { name, .. } if name == "StorageError"),
            "{outcome:?}"
        );
        let ended = facade.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!(
            (ended.status, ended.stop_reason.as_deref()),
            (RunStatus::Error, Some("storage_full"))
        );
        assert!(
            ended
                .error
                .unwrap()
                .contains("steps of the run could not be stored")
        );
        assert_eq!(saved(&facade).await, ["hello"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_store_accepts_only_end() {
    as_user(async {
        let (facade, _) = with_failing_store(|commit| {
            (!commit.checkpoints.is_empty()).then(|| StoreError::Failed("no".to_owned()))
        });
        let (run, outcome) = facade.create_and_wait(spec("finish")).await.unwrap();
        assert!(matches!(outcome, WaitOutcome::Failed { .. }), "{outcome:?}");
        assert_eq!(
            facade
                .get_run(None, &run.run_id)
                .await
                .unwrap()
                .unwrap()
                .status,
            RunStatus::Error
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_resumes_after_store_outage() {
    as_user(async {
        let (facade, commit) = with_failing_store(away);
        lifecycle(&facade).recover().await.unwrap();
        let (run, outcome) = RunWaits::new(facade.runtime())
            .create(RunRequest {
                durability: Durability::Sync,
                ..spec("finish")
            })
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let stored = facade
            .runtime()
            .ports()
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert!(!stored.status.is_terminal(), "{stored:?}");
        *commit.fails.lock() = |_| None;
        let outcome = outcome.await;
        let ended = facade.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        assert_eq!(saved(&facade).await, ["hello", "one two"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn interrupt_is_published_after_commit() {
    as_user(async {
        let (facade, commit) = with_failing_store(away);
        let (_, mut stream) = facade.create_and_stream(spec("ask"), BEAT).await.unwrap();
        let awaits_human =
            |item: &StreamItem| matches!(item, StreamItem::Event(event) if event.data.pieces().any(|piece| String::from_utf8_lossy(piece).contains("__interrupt__")));
        let until = Instant::now() + Duration::from_secs(40);
        while let Ok(item) = tokio::time::timeout_at(until, stream.items.next()).await {
            assert!(!awaits_human(&item.expect("no end")), "a crash could revert the interrupt");
        }
        *commit.fails.lock() = |_| None;
        let rest: Vec<_> = stream.items.collect().await;
        assert!(rest.iter().any(awaits_human), "{rest:?}");
        assert_eq!(rest.last(), Some(&StreamItem::End(TerminalKind::End)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn run_is_at_most_one_step_ahead_of_store() {
    as_user(async {
        let (facade, commit) = with_failing_store_over(runtime_in_memory(Arc::new(FiveSteps)).unwrap(), away);
        let (_, mut stream) = facade.create_and_stream(spec("any"), BEAT).await.unwrap();
        let is_step = |item: &StreamItem| matches!(item, StreamItem::Event(event) if event.event == "updates");
        let (until, mut steps) = (Instant::now() + Duration::from_secs(30), 0);
        while let Ok(item) = tokio::time::timeout_at(until, stream.items.next()).await {
            steps += usize::from(is_step(&item.expect("no end")));
        }
        assert!(steps <= 2, "{steps} steps were published");
        *commit.fails.lock() = |_| None;
        let rest: Vec<_> = stream.items.collect().await;
        assert_eq!(steps + rest.iter().filter(|item| is_step(item)).count(), 5);
        assert_eq!(rest.last(), Some(&StreamItem::End(TerminalKind::End)));
    })
    .await;
}

/// Runs an agent that registers an update of the user's memory. Returns the status of the run.
async fn status_of_remembering(fails: fn(&RunCommit) -> Option<StoreError>) -> RunStatus {
    as_user(async {
        let (facade, _) = with_failing_store(fails);
        let waits = RunWaits::new(facade.runtime());
        let (run, outcome) = waits.create(spec("remember")).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(600), outcome).await;
        ended.expect("the end is stored");
        let stored = facade
            .runtime()
            .ports()
            .query
            .get(&run.run_id, &Owner::None);
        stored.await.unwrap().unwrap().status
    })
    .await
}

fn rejected() -> StoreError {
    StoreError::Failed("rejected".to_owned())
}

#[tokio::test(start_paused = true)]
async fn memory_update_is_committed_with_the_end_of_the_run() {
    let status = status_of_remembering(|commit| {
        (commit.end.is_some() != commit.memory_update.is_some()).then(rejected)
    });
    assert_eq!(status.await, RunStatus::Success);
}

#[tokio::test(start_paused = true)]
async fn end_is_stored_if_its_memory_update_is_rejected() {
    let status = status_of_remembering(|commit| commit.memory_update.as_ref().map(|_| rejected()));
    assert_eq!(status.await, RunStatus::Success);
}
