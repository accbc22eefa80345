//! Processes that execute, one after the other, a run of two steps.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Map, Value, json};

use super::facade::*;
use crate::agent::{
    Agent, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart, AgentStream,
    AssistantInfo, EventReceiver, ModelCallRecord, RunContext, StepEvent, StopKind,
    UnknownAssistant,
};
use crate::checkpoint::PendingTask;
use crate::in_memory::{InMemoryOptions, InMemoryStreamBridge, runtime_in_memory};
use crate::ports::EventQuery;
use crate::runs::*;
use crate::stream_bridge::StreamItem;
use deerflow_core::actor_context::Owner;
use deerflow_core::messages::{Message, UsageMetadata};
use deerflow_core::state::StateUpdate;

/// Agent that answers "first", writes a checkpoint and hangs. From that checkpoint it answers
/// "second" and ends.
#[derive(Debug)]
struct TwoSteps;

impl Agent for TwoSteps {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
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
    before.runtime().ports().tasks.token().cancel();
    let bridge = Arc::new(InMemoryStreamBridge::new(InMemoryOptions::default()).unwrap());
    over(RuntimePorts {
        bridge,
        ..before.runtime().ports().clone()
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
        .runtime()
        .ports()
        .query
        .get(&run.run_id, &Owner::None)
        .await
        .unwrap()
        .unwrap()
}

pub(crate) async fn rows(process: &RunsFacade, event_type: &str) -> Vec<Value> {
    let query = EventQuery {
        limit: 100,
        event_types: vec![event_type.to_owned()],
        ..EventQuery::default()
    };
    let rows = process
        .runtime()
        .ports()
        .events
        .list(&thread(), &query, &Owner::None)
        .await
        .unwrap();
    rows.into_iter()
        .map(|row| row.event.content.into_value())
        .collect()
}

pub(crate) async fn human_rows(process: &RunsFacade) -> usize {
    rows(process, "llm.human.input").await.len()
}
