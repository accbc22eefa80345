//! How runs end while the store does not take what they write.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::messages::Message;
use crate::runtime::actor_context::Owner;
use crate::runtime::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream, AssistantInfo,
    RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::runtime::checkpoint::PendingTask;
use crate::runtime::memory::runtime_in_memory;
use crate::runtime::runs::store::{CommitError, RunCommit, RunCommitStore, StoreError};
use crate::runtime::runs::tests::{BEAT, as_user, facade, over, spec, texts, thread};
use crate::runtime::runs::{Durability, RunSpec, RunStatus, RunsFacade, RuntimeParts, WaitOutcome};
use crate::runtime::stream_bridge::{StreamItem, TerminalKind};
use crate::state::StateUpdate;

/// A store that answers some commits with an error.
#[derive(Debug)]
struct Refusing {
    store: Arc<dyn RunCommitStore>,
    refuses: Mutex<fn(&RunCommit) -> Option<StoreError>>,
}

#[async_trait]
impl RunCommitStore for Refusing {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        let refused = (*self.refuses.lock())(&commit);
        match refused {
            Some(error) => Err(error.into()),
            None => self.store.commit(commit).await,
        }
    }
}

fn away(_: &RunCommit) -> Option<StoreError> {
    Some(StoreError::Unavailable("away".to_owned()))
}

/// Takes five steps, a second apart.
#[derive(Debug)]
struct FiveSteps;

impl Agent for FiveSteps {
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream {
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

fn refusing(refuses: fn(&RunCommit) -> Option<StoreError>) -> (RunsFacade, Arc<Refusing>) {
    refusing_over(facade().parts().clone(), refuses)
}

fn refusing_over(
    parts: RuntimeParts,
    refuses: fn(&RunCommit) -> Option<StoreError>,
) -> (RunsFacade, Arc<Refusing>) {
    let commit = Arc::new(Refusing {
        store: parts.commit.clone(),
        refuses: Mutex::new(refuses),
    });
    (
        over(RuntimeParts {
            commit: commit.clone(),
            ..parts
        }),
        commit,
    )
}

async fn saved(facade: &RunsFacade) -> Vec<String> {
    let head = facade
        .parts()
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
async fn a_run_that_waits_for_the_store_stops_when_it_is_told_to() {
    as_user(async {
        let (facade, _) = refusing(away);
        let run = facade
            .create_background(RunSpec {
                durability: Durability::Sync,
                ..spec("finish")
            })
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(facade.live_runs(), 1);
        let told = Instant::now();
        facade.hand_over_all();
        while facade.live_runs() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(
            told.elapsed() < Duration::from_secs(5),
            "{:?}",
            told.elapsed()
        );
        let stored = facade
            .parts()
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            (stored.status, stored.attempt),
            (RunStatus::Starting, 1),
            "it is taken over by who finds it"
        );
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_steps_however_long_the_store_is_away_at_its_end() {
    as_user(async {
        let (facade, commit) = refusing(away);
        let (run, outcome) = facade.create_for_waiting(spec("finish")).await.unwrap();
        let mut outcome = Box::pin(outcome);
        assert!(
            tokio::time::timeout(Duration::from_secs(600), &mut outcome)
                .await
                .is_err(),
            "it may not be over"
        );
        *commit.refuses.lock() = |_| None;
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
async fn a_run_whose_steps_the_store_refuses_fails_and_its_input_stays() {
    as_user(async {
        let (facade, _) = refusing(|commit| {
            (commit.checkpoints.len() > 1).then(|| StoreError::NotWritable("too much".to_owned()))
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
async fn a_run_ends_though_the_store_takes_nothing_but_its_end() {
    as_user(async {
        let (facade, _) = refusing(|commit| {
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
async fn a_run_whose_steps_the_store_was_away_for_goes_on_when_it_is_back() {
    as_user(async {
        let (facade, commit) = refusing(away);
        facade.recover().await.unwrap();
        let (run, outcome) = facade
            .create_for_waiting(RunSpec {
                durability: Durability::Sync,
                ..spec("finish")
            })
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let stored = facade
            .parts()
            .query
            .get(&run.run_id, &Owner::None)
            .await
            .unwrap()
            .unwrap();
        assert!(!stored.status.is_terminal(), "{stored:?}");
        *commit.refuses.lock() = |_| None;
        let outcome = outcome.await;
        let ended = facade.get_run(None, &run.run_id).await.unwrap().unwrap();
        assert_eq!(texts(&outcome), ["hello", "one two"]);
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        assert_eq!(saved(&facade).await, ["hello", "one two"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_question_is_shown_once_it_is_stored() {
    as_user(async {
        let (facade, commit) = refusing(away);
        let (_, mut stream) = facade.create_and_stream(spec("ask"), BEAT).await.unwrap();
        let asks =
            |item: &StreamItem| matches!(item, StreamItem::Event(event) if event.data.pieces().iter().any(|piece| String::from_utf8_lossy(piece).contains("__interrupt__")));
        let until = Instant::now() + Duration::from_secs(40);
        while let Ok(item) = tokio::time::timeout_at(until, stream.items.next()).await {
            assert!(!asks(&item.expect("no end")), "nobody could answer it after a crash");
        }
        *commit.refuses.lock() = |_| None;
        let rest: Vec<_> = stream.items.collect().await;
        assert!(rest.iter().any(asks), "{rest:?}");
        assert_eq!(rest.last(), Some(&StreamItem::End(TerminalKind::End)));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_is_no_more_than_a_step_ahead_of_a_store_that_is_away() {
    as_user(async {
        let (facade, commit) = refusing_over(runtime_in_memory(Arc::new(FiveSteps)).unwrap(), away);
        let (_, mut stream) = facade.create_and_stream(spec("any"), BEAT).await.unwrap();
        let is_step = |item: &StreamItem| matches!(item, StreamItem::Event(event) if event.event == "updates");
        let (until, mut steps) = (Instant::now() + Duration::from_secs(30), 0);
        while let Ok(item) = tokio::time::timeout_at(until, stream.items.next()).await {
            steps += usize::from(is_step(&item.expect("no end")));
        }
        assert!(steps <= 2, "{steps} steps are shown");
        *commit.refuses.lock() = |_| None;
        let rest: Vec<_> = stream.items.collect().await;
        assert_eq!(steps + rest.iter().filter(|item| is_step(item)).count(), 5);
        assert_eq!(rest.last(), Some(&StreamItem::End(TerminalKind::End)));
    })
    .await;
}
