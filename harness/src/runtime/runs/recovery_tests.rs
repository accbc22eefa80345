//! What becomes of runs whose process is gone: over memory stores that two processes see one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::super::tests::{BEAT, as_user, over, spec, texts, thread};
use super::super::*;
use super::{Fate, LOST, fate};
use crate::clock::ManualClock;
use crate::messages::{Message, UsageMetadata};
use crate::runtime::actor_context::Owner;
use crate::runtime::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart, AgentStream,
    AssistantInfo, ModelCallRecord, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::runtime::checkpoint::{HistoryQuery, PendingTask};
use crate::runtime::memory::{MemoryOptions, MemoryStreamBridge, runtime_in_memory};
use crate::runtime::runs::store::{
    CommitError, EventQuery, NewRun, Recipe, RunCommit, RunCommitStore, StoreError,
};
use crate::runtime::stream_bridge::{ResumeFrom, StreamItem, StreamKey};
use crate::state::StateUpdate;
use crate::testkit::{new_run, record};

/// Says "first", with a checkpoint, and hangs. Where that was said already it says "second" and is done.
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

pub(in crate::runtime::runs) fn process() -> RunsFacade {
    over(runtime_in_memory(Arc::new(OnlyTwoSteps)).unwrap())
}

/// The next process over the same stores; nothing else is left of `before`.
pub(in crate::runtime::runs) fn after(before: &RunsFacade) -> RunsFacade {
    before.parts().tasks.token().cancel();
    let bridge = Arc::new(MemoryStreamBridge::new(MemoryOptions::default()).unwrap());
    over(RuntimeParts {
        bridge,
        ..before.parts().clone()
    })
}

/// A run whose first step is durable, and which goes no farther here.
pub(in crate::runtime::runs) async fn stuck(process: &RunsFacade, spec: RunSpec) -> RunRecord {
    let spec = RunSpec {
        durability: Durability::Sync,
        ..spec
    };
    let (run, mut stream) = process.create_and_stream(spec, BEAT).await.unwrap();
    // With this durability a step is shown once it is stored.
    while let Some(item) = stream.items.next().await {
        if matches!(&item, StreamItem::Event(event) if &*event.event == "updates") {
            break;
        }
    }
    run
}

pub(in crate::runtime::runs) async fn stored(process: &RunsFacade, run: &RunRecord) -> RunRecord {
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
async fn a_run_goes_on_where_its_last_checkpoint_stands() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
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
async fn a_run_that_had_not_begun_begins_with_the_input_that_was_accepted() {
    as_user(async {
        let before = process();
        let spec = spec("any");
        let recipe = Arc::new(Recipe {
            spec: spec.clone(),
            actor: crate::runtime::actor_context::ActorContext::user("ann"),
        });
        before
            .parts()
            .create
            .admit(NewRun {
                recipe,
                kwargs: spec.kwargs,
                ..new_run("left", "t1")
            })
            .await
            .unwrap();
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        let left = after
            .get_run(None, &crate::testkit::run("left"))
            .await
            .unwrap()
            .unwrap();
        let mut stream = after
            .join_stream(None, &left.run_id, ResumeFrom::Start, BEAT)
            .await
            .unwrap();
        let mut shown = None;
        while let Some(StreamItem::Event(event)) = stream.items.next().await {
            if &*event.event == "updates" {
                shown = Some(event.data.into_bytes());
                break;
            }
        }
        assert!(String::from_utf8_lossy(&shown.unwrap()).contains("first"));
    })
    .await;
}

#[tokio::test]
async fn a_run_that_shall_not_go_on_ends_as_an_error_and_keeps_its_input() {
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
async fn a_run_that_was_told_to_stop_before_its_process_died_is_interrupted() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        let told = before
            .parts()
            .create
            .request_cancel(
                &run.run_id,
                CancelAction::Interrupt,
                before.parts().clock.now(),
            )
            .await;
        assert!(told.unwrap().is_some());
        let after = after(&before);
        assert_eq!(after.recover().await.unwrap(), 1);
        assert_eq!(stored(&after, &run).await.status, RunStatus::Interrupted);
        assert!(after.create_background(spec("any")).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_handed_over_is_no_loss_and_goes_on() {
    as_user(async {
        let before = process();
        before.recover().await.unwrap();
        let run = stuck(&before, spec("any")).await;
        // As a process that ends does: it takes nothing any more.
        before.parts().tasks.token().cancel();
        before.hand_over_all();
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
async fn a_run_that_is_handed_over_and_then_told_to_stop_keeps_what_it_has() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        before.hand_over_all();
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
fn what_becomes_of_a_run_follows_from_its_losses_and_what_was_asked_for() {
    let (run, limits) = (record("r1", "t1"), RunLimits::default());
    let with = |change: &dyn Fn(&mut RunSpec)| {
        let mut spec = spec("any");
        change(&mut spec);
        spec
    };
    let plain = with(&|_| {});
    let exit = with(&|spec| spec.durability = Durability::Exit);
    let fail = with(&|spec| spec.recovery = Some(Recovery::Fail));
    assert_eq!(fate(&run, &exit, 0, false, &limits), Fate::Start);
    assert_eq!(
        (
            fate(&run, &plain, 1, true, &limits),
            fate(&run, &plain, 2, true, &limits)
        ),
        (Fate::Start, Fate::Start)
    );
    assert!(matches!(
        fate(&run, &plain, 3, true, &limits),
        Fate::End(ATTEMPTS_EXHAUSTED, _)
    ));
    assert_eq!(
        fate(&run, &exit, 1, true, &limits),
        Fate::End(NODE_LOST, LOST)
    );
    assert_eq!(
        fate(&run, &fail, 1, true, &limits),
        Fate::End(ORPHAN_RECOVERED, LOST)
    );
    let stopped = RunRecord {
        cancel: Some(CancelAction::Interrupt),
        ..run.clone()
    };
    assert_eq!(
        fate(&stopped, &plain, 1, true, &limits),
        Fate::End(ORPHAN_RECOVERED, LOST)
    );
    let unforgiving = RunLimits {
        recovery: Recovery::Fail,
        ..limits
    };
    assert_eq!(
        fate(&run, &plain, 1, true, &unforgiving),
        Fate::End(ORPHAN_RECOVERED, LOST)
    );
    // What was accepted and never begun is begun by the next one.
    for spec in [&exit, &plain] {
        assert_eq!(fate(&run, spec, 2, false, &limits), Fate::Start);
        assert!(matches!(
            fate(&run, spec, 3, false, &limits),
            Fate::End(ATTEMPTS_EXHAUSTED, _)
        ));
    }
}

#[tokio::test]
async fn what_a_run_cost_is_the_sum_over_its_attempts() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
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
async fn what_a_run_was_shown_and_what_it_presented_is_journaled_once_over_its_attempts() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
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
async fn what_a_lost_run_cost_is_known_although_nobody_goes_on_with_it() {
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
async fn the_time_limit_of_a_run_counts_from_its_first_start() {
    as_user(async {
        let before = process();
        let run = stuck(&before, spec("any")).await;
        let later = before.parts().clock.now() + TimeDelta::days(2);
        let after = over(RuntimeParts {
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

/// A store of commits that is away while it is told so.
#[derive(Debug)]
struct Away {
    store: Arc<dyn RunCommitStore>,
    away: AtomicBool,
}

#[async_trait]
impl RunCommitStore for Away {
    async fn commit(&self, commit: RunCommit) -> Result<(), CommitError> {
        if self.away.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("away".to_owned()).into());
        }
        self.store.commit(commit).await
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_of_an_end_before_it_is_stored() {
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
        let after = after(&before);
        let commit = Arc::new(Away {
            store: after.parts().commit.clone(),
            away: AtomicBool::new(true),
        });
        let after = over(RuntimeParts {
            commit: commit.clone(),
            ..after.parts().clone()
        });
        after.recover().await.unwrap();
        let mut outcome = Box::pin(after.join_wait(None, &run.run_id));
        assert!(
            tokio::time::timeout(Duration::from_secs(30), &mut outcome)
                .await
                .is_err(),
            "it may not be over"
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
async fn who_waits_for_a_run_that_ended_elsewhere_with_its_thread_gets_its_last_state() {
    as_user(async {
        let here = process();
        let there = over(here.parts().clone());
        let scope = RunScope::Stateless { temporary: true };
        let (run, outcome) = here
            .create_for_waiting(RunSpec {
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
        here.hand_over_all();
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

/// Writes every commit, and loses the reply to the first.
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
async fn an_end_whose_reply_was_lost_is_told_all_the_same() {
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
        let after = after(&before);
        let commit = Arc::new(LosesFirstReply {
            store: after.parts().commit.clone(),
            lost: AtomicBool::new(false),
        });
        let after = over(RuntimeParts {
            commit,
            ..after.parts().clone()
        });
        after.recover().await.unwrap();
        assert_eq!(stored(&after, &run).await.status, RunStatus::Error);
        let key = StreamKey {
            run_id: run.run_id.clone(),
            attempt: 2,
        };
        let told = async {
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
        tokio::time::timeout(Duration::from_secs(30), told)
            .await
            .expect("the stream ends");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_joins_a_good_run_whose_checkpoints_were_pruned_gets_where_its_thread_stands() {
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
