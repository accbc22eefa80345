//! Tests of the facade over in-memory stores, with scripted agents.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream,
    AssistantInfo, MessageMeta, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::in_memory::runtime_in_memory;
use crate::runs::store::{EventQuery, RunListQuery};
use crate::stream_bridge::{ResumeFrom, StreamItem, TerminalKind};
use deerflow_core::actor_context::{ActorContext, Owner, scope};
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::messages::{Message, MessageChunk, kwargs};
use deerflow_core::state::StateUpdate;

pub(super) const BEAT: Duration = Duration::from_secs(15);

/// Action of a test agent after it has streamed "one " and "two".
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Finish,
    /// Runs a tool for longer than the idle limit.
    Work,
    Hang,
    Fail,
    Panic,
    Ask,
}

#[derive(Debug)]
struct TestAgent(Then);

impl Agent for TestAgent {
    fn stream(
        &self,
        input: AgentInput,
        ctx: RunContext,
        events: mpsc::UnboundedReceiver<AgentEvent>,
    ) -> AgentStream {
        let then = self.0;
        let driver = async move {
            let id = ctx.ids.message_id();
            let meta = Arc::new(MessageMeta {
                langgraph_node: "model".to_owned(),
                ..MessageMeta::default()
            });
            for word in ["one ", "two"] {
                let chunk = MessageChunk {
                    content: word.to_owned(),
                    ..MessageChunk::empty(id.clone())
                };
                ctx.sink
                    .emit(AgentEvent::Token(Box::new(chunk), meta.clone()));
            }
            match then {
                Then::Hang => std::future::pending::<()>().await,
                Then::Fail => return Err(AgentError::RecursionLimit(3)),
                Then::Panic => panic!("boom"),
                Then::Work => {
                    ctx.sink.emit(AgentEvent::ToolStart {
                        call_id: "c".to_owned(),
                        name: "bash".to_owned(),
                    });
                    tokio::time::sleep(3 * RunLimits::default().idle).await;
                }
                Then::Finish | Then::Ask => {}
            }
            let answer = Message::ai("one two").with(|body| body.id = Some(id));
            let update = StateUpdate::messages([answer]).and("title", json!("A title"));
            let mut state = input.state;
            state.apply(update.clone(), &*ctx.ids)?;
            ctx.sink.emit(AgentEvent::Step(StepEvent {
                node: "model".to_owned(),
                update: Some(update),
                state: Arc::new(state),
                next: vec![],
                machine: Value::Null,
                steps: 1,
                checkpoint: true,
            }));
            let kind = match then {
                Then::Ask => StopKind::Question(vec![json!({ "value": "which?", "id": "q1" })]),
                _ => StopKind::Completed,
            };
            Ok(AgentOutcome {
                kind,
                stop_reason: None,
            })
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned()]
    }
}

/// Resolver of which the assistant `once` exists only for the first call.
#[derive(Debug, Default)]
struct Agents(std::sync::atomic::AtomicBool);

#[async_trait]
impl AgentResolver for Agents {
    async fn resolve(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let then = match assistant {
            "finish" => Then::Finish,
            "work" => Then::Work,
            "hang" => Then::Hang,
            "fail" => Then::Fail,
            "panic" => Then::Panic,
            "ask" => Then::Ask,
            "once" if !self.0.swap(true, std::sync::atomic::Ordering::Relaxed) => Then::Finish,
            other => return Err(UnknownAssistant::NotFound(other.to_owned())),
        };
        Ok(Arc::new(TestAgent(then)))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

pub(super) fn facade() -> RunsFacade {
    over(runtime_in_memory(Arc::new(Agents::default())).unwrap())
}

/// Creates another process over the same stores.
pub(super) fn over(ports: RuntimePorts) -> RunsFacade {
    RunsFacade::new(
        RuntimePorts {
            tasks: Default::default(),
            ..ports
        },
        RunLimits::default(),
    )
}

pub(super) fn thread() -> ThreadId {
    ThreadId::parse("t1").unwrap()
}

pub(super) fn spec(assistant: &str) -> RunRequest {
    let request_echo =
        json!({ "input": { "messages": [{ "type": "human", "content": "hello" }] } });
    RunRequest {
        stream_modes: [
            StreamMode::Values,
            StreamMode::MessagesTuple,
            StreamMode::Updates,
        ]
        .into_iter()
        .collect(),
        presentation: RunPresentation {
            echo_input: true,
            request_echo,
            ..RunPresentation::default()
        },
        ..RunRequest::ask(assistant, thread(), Message::human("hello"))
    }
}

pub(super) async fn as_user<F: Future>(work: F) -> F::Output {
    scope(ActorContext::user("ann"), work).await
}

/// Reads a stream to its end. Returns the names of its events, and its end.
pub(super) async fn drain(stream: RunStream) -> (Vec<String>, Option<StreamItem>) {
    let mut names = Vec::new();
    let mut last = None;
    let mut items = stream.items;
    while let Some(item) = items.next().await {
        match item {
            StreamItem::Event(event) => names.push(event.event.into_owned()),
            StreamItem::Heartbeat => {}
            end => last = Some(end),
        }
    }
    (names, last)
}

pub(super) async fn wait_for_tokens(facade: &RunsFacade, run: &RunId) {
    let stream = facade
        .join_stream(None, run, ResumeFrom::Start, BEAT)
        .await
        .unwrap();
    let mut items = stream.items;
    let mut tokens = 0;
    while tokens < 2 {
        if let Some(StreamItem::Event(event)) = items.next().await
            && event.event == "messages"
        {
            tokens += 1;
        }
    }
}

pub(super) fn texts(outcome: &WaitOutcome) -> Vec<String> {
    let values = match outcome {
        WaitOutcome::Values(values) => values,
        WaitOutcome::Failed { values, .. } => values.as_ref().unwrap(),
    };
    let values: Value = serde_json::from_slice(values).unwrap();
    values["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

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
            .parts()
            .checkpointer
            .get(&thread(), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(head.state.messages().len(), 2);
        assert_eq!(head.state.title(), Some("A title"));
        assert!(head.meta.next.is_empty());
        let rows = facade
            .parts()
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
            .parts()
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
            .parts()
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
        let values: Value = serde_json::from_slice(&values).unwrap();
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
            .parts()
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
async fn runs_of_other_users_are_not_found() {
    let facade = facade();
    let record = as_user(facade.create_and_wait(spec("finish")))
        .await
        .unwrap()
        .0;
    scope(ActorContext::user("bob"), async {
        assert!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            facade
                .list_runs(
                    &thread(),
                    &RunListQuery {
                        limit: 10,
                        ..RunListQuery::default()
                    }
                )
                .await
                .unwrap()
                .is_empty()
        );
        assert!(matches!(
            facade.join_wait(None, &record.run_id).await,
            Err(RunError::NotFound(_))
        ));
        assert!(matches!(
            facade.create_background(spec("finish")).await,
            Err(RunError::Admit(store::AdmitError::ThreadNotFound(_)))
        ));
    })
    .await;
}

#[tokio::test]
async fn delete_removes_ended_run_but_rejects_active_run() {
    as_user(async {
        let facade = facade();
        let (record, _) = facade.create_and_wait(spec("finish")).await.unwrap();
        facade
            .delete_run(Some(&thread()), &record.run_id)
            .await
            .unwrap();
        assert!(
            facade
                .get_run(None, &record.run_id)
                .await
                .unwrap()
                .is_none()
        );
        assert!(
            facade
                .parts()
                .checkpointer
                .get(&thread(), None)
                .await
                .unwrap()
                .is_none()
        );
        let active = facade.create_background(spec("hang")).await.unwrap();
        assert!(matches!(
            facade.delete_run(None, &active.run_id).await,
            Err(RunError::StillActive(_))
        ));
    })
    .await;
}

#[tokio::test]
async fn run_without_agent_ends_and_input_joins_thread() {
    as_user(async {
        let facade = facade();
        // Admitted by a process that died at once. Its assistant no longer exists.
        let ports = facade.parts().clone();
        let orphan =
            crate::testkit::with_request(crate::testkit::new_run("left", "t1"), |request| {
                request.presentation = spec("finish").presentation
            });
        let orphan = ports.create.admit(orphan).await.unwrap().run;
        assert_eq!(facade.recover().await.unwrap(), 1);
        let ended = facade.get_run(None, &orphan.run_id).await.unwrap().unwrap();
        assert_eq!(
            (ended.status, ended.stop_reason.as_deref()),
            (RunStatus::Error, Some(ORPHAN_RECOVERED))
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
    async fn commit(&self, commit: store::RunCommit) -> Result<(), store::CommitError> {
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
            .parts()
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

#[tokio::test]
async fn wait_returns_previous_state_after_rollback() {
    as_user(async {
        let facade = facade();
        let (record, outcome) = facade.create_for_waiting(spec("hang")).await.unwrap();
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
