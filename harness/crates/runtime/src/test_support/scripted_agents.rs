//! Scripted agents that stream two tokens and then perform the action that their assistant name
//! selects.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use crate::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStream,
    AssistantInfo, EventReceiver, MessageMeta, RunContext, StepEvent, StopKind, UnknownAssistant,
};
use crate::runs::*;
use crate::testkit::memory_update;
use deerflow_core::messages::{Message, MessageChunk};
use deerflow_core::state::StateUpdate;

/// Action of a test agent after it has streamed "one " and "two".
#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Finish,
    /// Registers an update of the user's memory, and finishes.
    Remember,
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
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
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
                Then::Finish | Then::Remember | Then::Ask => {}
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
            if then == Then::Remember {
                ctx.sink.emit(AgentEvent::MemoryUpdate(memory_update(1)));
            }
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

/// Resolver whose assistant `once` exists for the first call only.
#[derive(Debug, Default)]
pub(crate) struct Agents(std::sync::atomic::AtomicBool);

#[async_trait]
impl AgentResolver for Agents {
    async fn resolve(
        &self,
        assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        let then = match assistant {
            "finish" => Then::Finish,
            "remember" => Then::Remember,
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
