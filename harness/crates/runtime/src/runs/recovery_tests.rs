//! Tests of orphaned runs, over in-memory stores that two processes use one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::super::end_commit::LOST_TEXT;
use super::super::takeover_decision::{TakeoverDecision, decide_takeover};
use super::super::tests::{BEAT, as_user, over, spec, texts, thread};
use super::super::*;
use crate::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart, AgentStream,
    AssistantInfo, ModelCallRecord, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::checkpoint::{HistoryQuery, PendingTask};
use crate::in_memory::{InMemoryOptions, InMemoryStreamBridge, runtime_in_memory};
use crate::runs::store::{
    CommitError, EventQuery, NewRun, RunCommit, RunCommitStore, StoreError, StoredRunRequest,
};
use crate::stream_bridge::{ResumeFrom, StreamItem, StreamKey};
use crate::testkit::{new_run, record};
use deerflow_core::actor_context::Owner;
use deerflow_core::clock::ManualClock;
use deerflow_core::messages::{Message, UsageMetadata};
use deerflow_core::state::StateUpdate;

/// Agent that answers "first", writes a checkpoint and hangs. From that checkpoint it answers
/// "second" and ends.
#[derive(Debug)]
struct TwoSteps;

impl Agent for TwoSteps {
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream {
        let driver = async move {
            let second =
                input.start == AgentStart::Continue && input.machine == Some(json!({ "said": 1 }));
            let text = if second { "second" } else { "first" };
            ctx.sink.emit(AgentEvent::MemoryShown {
                content_sha256: "digest".into(),
            });
            ctx.sink.emit(AgentEvent::ModelCall(ModelCallRecord {
                call_id: text.to_owned(),
                caller: "lead_agent".to_owned(),
                model: "small".to_owned(),
                message: Message::ai(text),
                usage: Some(UsageMetadata {
                    input_tokens: 3,
                    output_tokens: 2,
                    total_tokens: 5,
                    ..UsageMetadata::default()
                }),
                latency_ms: 1,
            }));
            let update = StateUpdate::messages([
                Message::ai(text).with(|body| body.id = Some(ctx.ids.message_id()))
            ])
            .and("artifacts", json!([format!("/{text}")]));
            let mut state = input.state;
            state.apply(update.clone(), &*ctx.ids)?;
            let next = if second {
                vec![]
            } else {
                vec![PendingTask::new("task-2", "model")]
            };
            let machine = json!({ "said": 1 });
            let (node, state) = ("model".to_owned(), Arc::new(state));
            ctx.sink.emit(AgentEvent::Step(StepEvent {
                node,
                update: Some(update),
                state,
                next,
                machine,
                steps: 1,
                checkpoint: true,
            }));
            if !second {
                std::future::pending::<()>().await;
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

#[derive(Debug)]
struct OnlyTwoSteps;

#[async_trait]
impl AgentResolver for OnlyTwoSteps {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(TwoSteps))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

pub(crate) fn process() -> RunsFacade {
    over(runtime_in_memory(Arc::new(OnlyTwoSteps)).unwrap())
}

/// Starts the next process over the same stores, after `before` has died.
pub(crate) fn after(before: &RunsFacade) -> RunsFacade {
    before.parts().tasks.token().cancel();
    let bridge = Arc::new(InMemoryStreamBridge::new(InMemoryOptions::default()).unwrap());
    over(RuntimePorts {
        bridge,
        ..before.parts().clone()
    })
}

/// Creates a run whose first step is durable and that then hangs.
pub(crate) async fn create_stuck(process: &RunsFacade, spec: RunRequest) -> RunRecord {
    let spec = RunRequest {
        durability: Durability::Sync,
        ..spec
    };
    let (run, mut stream) = process.create_and_stream(spec, BEAT).await.unwrap();
    // With this durability, a step is published once it is stored.
    while let Some(item) = stream.items.next().await {
        if matches!(&item, StreamItem::Event(event) if &*event.event == "updates") {
            break;
        }
    }
    run
}

pub(crate) async fn stored(process: &RunsFacade, run: &RunRecord) -> RunRecord {
    process
        .parts()
        .query
        .get(&run.run_id, &Owner::None)
        .await
        .unwrap()
        .unwrap()
}

async fn rows(process: &RunsFacade, event_type: &str) -> Vec<Value> {
    let query = EventQuery {
        limit: 100,
        event_types: vec![event_type.to_owned()],
        ..EventQuery::default()
    };
    let rows = process
        .parts()
        .events
        .list(&thread(), &query, &Owner::None)
        .await
        .unwrap();
    rows.into_iter().map(|row| row.event.content).collect()
}

async fn human_rows(process: &RunsFacade) -> usize {
    rows(process, "llm.human.input").await.len()
}

#[tokio::test]
async fn orphaned_run_resumes_from_last_checkpoint() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let mut stream = after
            .join_stream(None, &run.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
        let ended = stored(&after, &run).await;
        assert_eq!((ended.status, ended.attempt), (RunStatus::Success, 2));
        assert_eq!(human_rows(&after).await, 1);
        let Some(StreamItem::Event(first)) = stream.items.next().await else {
            panic!("a metadata frame")
        };
        let first: Value = serde_json::from_slice(&first.data.into_bytes()).unwrap();
        assert_eq!(first["attempt"], 2);
        let metas = after
            .parts()
            .checkpointer
            .list_meta(
                &thread(),
                &HistoryQuery {
                    limit: 9,
                    ..HistoryQuery::default()
                },
            )
            .await
            .unwrap();
        let resumed = metas
            .iter()
            .find(|meta| Some(meta.checkpoint_id.as_str()) == first["checkpoint_id"].as_str());
        assert_eq!(resumed.map(|meta| meta.step), Some(1), "{first}");
        let Some(StreamItem::Event(snapshot)) = stream.items.next().await else {
            panic!("a snapshot")
        };
        let data: Value = serde_json::from_slice(&snapshot.data.into_bytes()).unwrap();
        assert_eq!(
            (&*snapshot.event, data["messages"].as_array().map(Vec::len)),
            ("values", Some(2))
        );
    })
    .await;
}

#[tokio::test]
async fn unstarted_orphan_starts_with_accepted_input() {
    as_user(async {
        let before = process();
        let recipe = Arc::new(StoredRunRequest {
            spec: spec("any"),
            actor: deerflow_core::actor_context::ActorContext::user("ann"),
        });
        before
            .parts()
            .create
            .admit(NewRun {
                recipe,
                ..new_run("left", "t1")
            })
            .await
            .unwrap();
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let orphan = after
            .get_run(None, &crate::testkit::run("left"))
            .await
            .unwrap()
            .unwrap();
        let mut stream = after
            .join_stream(None, &orphan.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let mut published = None;
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if &*event.event == "updates" {
                published = Some(event.data.into_bytes());
                break;
            }
        }
        assert!(String::from_utf8_lossy(&published.unwrap()).contains("first"));
    })
    .await;
}

#[tokio::test]
async fn unrecoverable_run_fails_and_keeps_input() {
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
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let ended = stored(&after, &run).await;
        assert_eq!(
            (ended.status, ended.stop_reason.as_deref()),
            (RunStatus::Error, Some(ORPHAN_RECOVERED))
        );
        let head = after
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages()[0].content.text(), "hello");
    })
    .await;
}

#[tokio::test]
async fn cancelled_orphan_ends_interrupted() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let cancelled = before
            .parts()
            .create
            .request_cancel(
                &run.run_id,
                CancelAction::Interrupt,
                before.parts().clock.now(),
            )
            .await;
        assert!(cancelled.unwrap().is_some());
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        assert_eq!(stored(&after, &run).await.status, RunStatus::Interrupted);
        assert!(after.create_background(spec("any")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn released_run_resumes_without_counting_a_loss() {
    as_user(async {
        let before = process();
        before.recover().await.unwrap();
        let run = create_stuck(&before, spec("any")).await;
        // A process that shuts down claims no more runs.
        before.parts().tasks.token().cancel();
        before.release_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 0);
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "first", "second"]);
    })
    .await;
}

#[tokio::test]
async fn cancelled_released_run_keeps_its_progress() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        before.release_all();
        while stored(&before, &run).await.status != RunStatus::Pending {
            tokio::task::yield_now().await;
        }
        before
            .cancel(None, &run.run_id, CancelAction::Interrupt, true)
            .await
            .unwrap();
        assert_eq!(stored(&before, &run).await.status, RunStatus::Interrupted);
        let head = before
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages().len(), 2);
    })
    .await;
}

#[test]
fn takeover_decision_follows_losses_and_request() {
    let (run, limits) = (record("r1", "t1"), RunLimits::default());
    let with = |change: &dyn Fn(&mut RunRequest)| {
        let mut spec = spec("any");
        change(&mut spec);
        spec
    };
    let plain = with(&|_| {});
    let exit = with(&|spec| spec.durability = Durability::Exit);
    let fail = with(&|spec| spec.recovery = Some(Recovery::Fail));
    assert_eq!(
        decide_takeover(&run, &exit, 0, false, &limits),
        TakeoverDecision::Start
    );
    assert_eq!(
        (
            decide_takeover(&run, &plain, 1, true, &limits),
            decide_takeover(&run, &plain, 2, true, &limits)
        ),
        (TakeoverDecision::Start, TakeoverDecision::Start)
    );
    assert!(matches!(
        decide_takeover(&run, &plain, 3, true, &limits),
        TakeoverDecision::End(ATTEMPTS_EXHAUSTED, _)
    ));
    assert_eq!(
        decide_takeover(&run, &exit, 1, true, &limits),
        TakeoverDecision::End(NODE_LOST, LOST_TEXT)
    );
    assert_eq!(
        decide_takeover(&run, &fail, 1, true, &limits),
        TakeoverDecision::End(ORPHAN_RECOVERED, LOST_TEXT)
    );
    let stopped = RunRecord {
        cancel: Some(CancelAction::Interrupt),
        ..run.clone()
    };
    assert_eq!(
        decide_takeover(&stopped, &plain, 1, true, &limits),
        TakeoverDecision::End(ORPHAN_RECOVERED, LOST_TEXT)
    );
    let unforgiving = RunLimits {
        recovery: Recovery::Fail,
        ..limits
    };
    assert_eq!(
        decide_takeover(&run, &plain, 1, true, &unforgiving),
        TakeoverDecision::End(ORPHAN_RECOVERED, LOST_TEXT)
    );
    // A run that was accepted but never started is started by the next process.
    for spec in [&exit, &plain] {
        assert_eq!(
            decide_takeover(&run, spec, 2, false, &limits),
            TakeoverDecision::Start
        );
        assert!(matches!(
            decide_takeover(&run, spec, 3, false, &limits),
            TakeoverDecision::End(ATTEMPTS_EXHAUSTED, _)
        ));
    }
}

#[tokio::test]
async fn usage_is_summed_over_attempts() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        assert_eq!(
            before
                .get_run(None, &run.run_id)
                .await
                .unwrap()
                .unwrap()
                .completion,
            RunCompletionData::default()
        );
        let after = after(&before);
        after.recover().await.unwrap();
        after.join_wait(None, &run.run_id).await.unwrap();
        let cost = stored(&after, &run).await.completion;
        assert_eq!(
            (
                cost.llm_call_count,
                cost.total_tokens,
                cost.lead_agent_tokens
            ),
            (2, 10, 10)
        );
        assert_eq!(
            cost.token_usage_by_model["small"],
            json!({ "input_tokens": 6, "output_tokens": 4, "total_tokens": 10 })
        );
        assert_eq!(
            (
                cost.first_human_message.as_deref(),
                cost.last_ai_message.as_deref()
            ),
            (Some("hello"), Some("second"))
        );
    })
    .await;
}

#[tokio::test]
async fn memory_and_delivery_are_journaled_once_over_attempts() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        assert_eq!(rows(&before, "context:memory").await.len(), 1);
        let after = after(&before);
        after.recover().await.unwrap();
        after.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(
            rows(&after, "context:memory").await,
            [json!({ "content_sha256": "digest" })]
        );
        let receipt = json!({ "presented": 2, "paths": ["/first", "/second"], "by_tool": {} });
        assert_eq!(rows(&after, "run.delivery").await, [receipt]);
    })
    .await;
}

#[tokio::test]
async fn usage_of_unrecovered_run_is_stored() {
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
        let after = after(&before);
        after.recover().await.unwrap();
        let ended = stored(&after, &run).await;
        assert_eq!(
            (ended.status, ended.completion.total_tokens),
            (RunStatus::Error, 5)
        );
    })
    .await;
}

#[tokio::test]
async fn wall_clock_limit_counts_from_first_attempt() {
    as_user(async {
        let before = process();
        let run = create_stuck(&before, spec("any")).await;
        let later = before.parts().clock.now() + TimeDelta::days(2);
        let after = over(RuntimePorts {
            clock: Arc::new(ManualClock::starting_at(later)),
            ..after(&before).parts().clone()
        });
        after.recover().await.unwrap();
        let outcome = after.join_wait(None, &run.run_id).await.unwrap();
        assert!(matches!(outcome, WaitOutcome::Failed { name, .. } if name == "TimeoutError"));
        assert_eq!(stored(&after, &run).await.status, RunStatus::Timeout);
    })
    .await;
}

/// Store whose commits fail while `away` is set.
#[derive(Debug)]
struct StoreUnavailable {
    store: Arc<dyn RunCommitStore>,
    away: AtomicBool,
}

#[async_trait]
impl RunCommitStore for StoreUnavailable {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".to_owned()).into());
        }
        self.store.commit(commit).await
    }
}

#[tokio::test(start_paused = true)]
async fn end_is_not_published_before_commit() {
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
        let after = after(&before);
        let commit = Arc::new(StoreUnavailable {
            store: after.parts().commit.clone(),
            away: AtomicBool::new(true),
        });
        let after = over(RuntimePorts {
            commit: commit.clone(),
            ..after.parts().clone()
        });
        after.recover().await.unwrap();
        let mut outcome = Box::pin(after.join_wait(None, &run.run_id));
        assert!(
            tokio::time::timeout(Duration::from_secs(30), &mut outcome)
                .await
                .is_err(),
            "the run may not end yet"
        );
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: 2,
        };
        after
            .parts()
            .bridge
            .publish(
                &key,
                "values".into(),
                bytes::Bytes::from_static(b"{}").into(),
            )
            .await
            .expect("no end was published");
        commit.away.store(false, Ordering::Relaxed);
        assert!(matches!(outcome.await.unwrap(), WaitOutcome::Failed { .. }));
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
    })
    .await;
}

#[tokio::test]
async fn wait_returns_last_state_after_remote_thread_deletion() {
    as_user(async {
        let here = process();
        let there = over(here.parts().clone());
        let scope = RunScope::Stateless { temporary: true };
        let (run, outcome) = here
            .create_for_waiting(RunRequest {
                scope,
                durability: Durability::Sync,
                ..spec("any")
            })
            .await
            .unwrap();
        while here
            .parts()
            .checkpointer
            .list_meta(
                &run.thread_id,
                &HistoryQuery {
                    limit: 9,
                    ..HistoryQuery::default()
                },
            )
            .await
            .unwrap()
            .len()
            < 3
        {
            tokio::task::yield_now().await;
        }
        here.parts().tasks.token().cancel();
        here.release_all();
        there.recover().await.unwrap();
        assert_eq!(texts(&outcome.await), ["hello", "first", "second"]);
        assert!(
            there
                .parts()
                .checkpointer
                .get(&run.thread_id, None)
                .await
                .unwrap()
                .is_none(),
            "the thread is gone"
        );
    })
    .await;
}

/// Store that writes every commit, but loses the reply to the first.
#[derive(Debug)]
struct LosesFirstReply {
    store: Arc<dyn RunCommitStore>,
    lost: AtomicBool,
}

#[async_trait]
impl RunCommitStore for LosesFirstReply {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        self.store.commit(commit).await?;
        if self.lost.swap(true, Ordering::Relaxed) {
            Ok(())
        } else {
            Err(StoreError::Unavailable("the reply was lost".to_owned()).into())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn end_with_lost_reply_is_published() {
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
        let after = after(&before);
        let commit = Arc::new(LosesFirstReply {
            store: after.parts().commit.clone(),
            lost: AtomicBool::new(false),
        });
        let after = over(RuntimePorts {
            commit,
            ..after.parts().clone()
        });
        after.recover().await.unwrap();
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: 2,
        };
        let cancelled = async {
            while after
                .parts()
                .bridge
                .publish(
                    &key,
                    "values".into(),
                    bytes::Bytes::from_static(b"{}").into(),
                )
                .await
                .is_ok()
            {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), cancelled)
            .await
            .expect("the stream ends");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn wait_returns_thread_state_after_pruning() {
    as_user(async {
        let process = super::super::tests::facade();
        process.create_and_wait(spec("finish")).await.unwrap();
        let old = process
            .parts()
            .create
            .admit(new_run("old", "t1"))
            .await
            .unwrap()
            .run;
        let end = Some(crate::testkit::end_in(RunStatus::Success));
        let commit = RunCommit::new(
            old.run_id.clone(),
            old.thread_id.clone(),
            old.attempt,
            old.created_at,
        );
        process
            .parts()
            .commit
            .commit(RunCommit {
                advance: Some(RunStatus::Running),
                end,
                ..commit
            })
            .await
            .unwrap();
        assert_eq!(
            texts(&process.join_wait(None, &old.run_id).await.unwrap()),
            ["hello", "one two"]
        );
    })
    .await;
}
