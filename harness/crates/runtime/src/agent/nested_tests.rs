//! Tests of nested agents in nodes of a graph: no tool call is involved.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use super::*;
use crate::agent::{AgentResolver, AgentStream, AssistantInfo, EventReceiver, UnknownAssistant};
use crate::in_memory::runtime_in_memory;
use crate::runs::*;
use crate::test_support::*;
use deerflow_core::messages::Message;

const NODE: &str = "inner:task-1";

fn completed() -> AgentOutcome {
    AgentOutcome {
        kind: StopKind::Completed,
        stop_reason: None,
    }
}

fn asking(questions: Vec<Value>) -> AgentOutcome {
    AgentOutcome {
        kind: StopKind::Question(questions),
        ..completed()
    }
}

/// Applies the text as an answer, if there is one, and emits the step.
fn step(
    state: &mut ThreadState,
    text: Option<String>,
    next: Vec<PendingTask>,
    machine: Value,
    ctx: &RunContext,
) -> Result<(), AgentError> {
    let update = text.map(|text| {
        let id = Some(ctx.ids.message_id());
        StateUpdate::messages([Message::ai(text).with(|body| body.id = id)])
    });
    if let Some(update) = update.clone() {
        state.apply(update, &*ctx.ids)?;
    }
    ctx.sink.emit(AgentEvent::Step(StepEvent {
        node: "node".to_owned(),
        update,
        state: Arc::new(state.clone()),
        next,
        machine,
        steps: 1,
        checkpoint: true,
    }));
    Ok(())
}

/// Agent that says "working", asks a question, and repeats the answer.
#[derive(Debug)]
struct Asker;

impl Agent for Asker {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            let mut state = input.state;
            let AgentStart::Resume(answer) = input.start else {
                let question = json!({ "value": "which?", "id": "q1" });
                let mut task = PendingTask::new("task-2", "ask");
                task.interrupts.push(question.clone());
                let text = Some("working".to_owned());
                step(&mut state, text, vec![task], json!("asked"), &ctx)?;
                return Ok(asking(vec![question]));
            };
            assert_eq!(input.machine, Some(json!("asked")));
            step(
                &mut state,
                Some(format!("chose {answer}")),
                vec![],
                Value::Null,
                &ctx,
            )?;
            Ok(completed())
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["ask".to_owned()]
    }
}

/// Graph with one node, which runs an [`Asker`] and repeats its messages.
#[derive(Debug)]
struct OneNode;

impl Agent for OneNode {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        let driver = async move {
            let mut state = input.state;
            let mut task = PendingTask::new("task-1", "inner");
            let answers = match input.start {
                AgentStart::Resume(answer) => vec![answer],
                _ => vec![],
            };
            step(&mut state, None, vec![task.clone()], json!("ran"), &ctx)?;
            let call = NestedCall {
                run: &ctx,
                namespace: &task.namespace(),
                saved: input.nested.get(&task.id).map(|saved| &**saved),
                answers: &answers,
                max_steps: 5,
            };
            let initial = StateUpdate::messages([Message::human("go")]);
            match run_nested(&Asker, initial, call, &mut ()).await? {
                NestedOutcome::Asks(NestedQuestion { id, question }) => {
                    let open = json!({ "value": question, "id": id });
                    task.interrupts.push(open.clone());
                    step(&mut state, None, vec![task], json!("ran"), &ctx)?;
                    Ok(asking(vec![open]))
                }
                NestedOutcome::Done(inner) => {
                    let texts: Vec<String> = inner
                        .messages()
                        .iter()
                        .map(|message| message.content.text())
                        .collect();
                    let text = Some(texts.join(", "));
                    step(&mut state, text, vec![], Value::Null, &ctx)?;
                    Ok(completed())
                }
            }
        };
        AgentStream::new(events, driver.boxed())
    }

    fn nodes(&self) -> Vec<String> {
        vec!["inner".to_owned()]
    }
}

#[derive(Debug)]
struct OnlyOneNode;

#[async_trait]
impl AgentResolver for OnlyOneNode {
    async fn resolve(
        &self,
        _assistant: &str,
        _options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        Ok(Arc::new(OneNode))
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        vec![]
    }
}

#[tokio::test]
async fn nested_agent_of_a_node_streams_asks_and_resumes() {
    as_user(async {
        let facade = over(runtime_in_memory(Arc::new(OnlyOneNode)).unwrap());
        let request = RunRequest {
            stream_subgraphs: true,
            ..spec("graph")
        };
        let (run, stream) = facade.create_and_stream(request, BEAT).await.unwrap();
        let (names, _) = drain(stream).await;
        let nested = format!("updates|{NODE}");
        assert!(names.contains(&nested), "{names:?}");
        facade.join_wait(None, &run.run_id).await.unwrap();

        let checkpointer = &facade.runtime().ports().checkpointer;
        let paused = checkpointer.get(&thread(), None).await.unwrap().unwrap();
        let [task] = &*paused.meta.next else {
            panic!("one task: {:?}", paused.meta.next)
        };
        assert_eq!(task.namespace(), NODE);
        assert_eq!(task.interrupts, [json!({ "value": "which?", "id": "q1" })]);
        let saved = task.nested.as_ref().expect("the state of the agent");
        assert_eq!(saved.state.messages().len(), 2);
        assert_eq!(saved.next[0].name, "ask");

        let answer = RunRequest::answer("graph", thread(), json!("b"));
        let (run, stream) = facade.create_and_stream(answer, BEAT).await.unwrap();
        drain(stream).await;
        let outcome = facade.join_wait(None, &run.run_id).await.unwrap();
        assert_eq!(texts(&outcome), ["hello", "go, working, chose \"b\""]);
        let ended = checkpointer.get(&thread(), None).await.unwrap().unwrap();
        assert!(ended.meta.next.is_empty());
    })
    .await;
}
