//! The agent under test, whose behaviour the user's message selects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use harness::messages::Message;
use harness::runtime::agent::{
    Agent, AgentError, AgentEvent, AgentInput, AgentOutcome, AgentResolver, AgentStart,
    AgentStream, AssistantInfo, AssistantPin, EventReceiver, ModelCallRecord, RunContext,
    StepEvent, StopKind, UnknownAssistant,
};
use harness::runtime::checkpoint::PendingTask;
use harness::state::StateUpdate;
use serde_json::{Map, Value, json};

/// Answers `say X` with X and `options` with the options of the run, asks a question per word of
/// `ask X Y`, never answers `slow`, and fails at `fail X` with X.
#[derive(Debug)]
struct Echo;

impl Agent for Echo {
    fn stream(&self, input: AgentInput, ctx: RunContext, events: EventReceiver) -> AgentStream {
        AgentStream::new(events, Box::pin(answer(input, ctx)))
    }

    fn nodes(&self) -> Vec<String> {
        vec!["model".to_owned(), "tools".to_owned()]
    }
}

async fn answer(input: AgentInput, ctx: RunContext) -> Result<AgentOutcome, AgentError> {
    let mut state = input.state;
    let user_text = match input.start {
        AgentStart::Fresh => state
            .messages()
            .last()
            .map(|message| message.content.text())
            .unwrap_or_default(),
        AgentStart::Resume(answers) => format!("say answered {answers}"),
        _ => return Err(AgentError::EmptyInput),
    };
    ctx.sink
        .emit(AgentEvent::Custom(json!({ "type": "started" })));
    if user_text == "slow" {
        std::future::pending::<()>().await;
    }
    if let Some(message) = user_text.strip_prefix("fail ") {
        return Err(AgentError::Ended {
            name: "RuntimeError".to_owned(),
            message: message.to_owned(),
        });
    }
    let questions: Vec<Value> = user_text
        .strip_prefix("ask ")
        .unwrap_or_default()
        .split_whitespace()
        .map(|id| json!({ "id": id, "value": { "question": id } }))
        .collect();
    let text = match &*user_text {
        "options" => json!(*ctx.options).to_string(),
        other => other.strip_prefix("say ").unwrap_or("hello").to_owned(),
    };
    let message = Message::ai(text).with(|body| body.id = Some(ctx.ids.message_id()));
    ctx.sink.emit(AgentEvent::ModelCall(ModelCallRecord {
        call_id: ctx.ids.message_id(),
        caller: "lead_agent".to_owned(),
        model: "fake".to_owned(),
        message: message.clone(),
        usage: None,
        latency_ms: 1,
    }));
    let step = StateUpdate::messages([message]);
    state.apply(step.clone(), &*ctx.ids)?;
    ctx.sink.emit(AgentEvent::Step(StepEvent {
        node: "model".to_owned(),
        update: Some(step),
        state: Arc::new(state),
        next: questions
            .iter()
            .map(|question| {
                let mut task = PendingTask::new(format!("task-{}", question["id"]), "tools");
                task.interrupts.push(question.clone());
                task
            })
            .collect(),
        machine: Value::Null,
        steps: 1,
        checkpoint: true,
    }));
    Ok(AgentOutcome {
        kind: if questions.is_empty() {
            StopKind::Completed
        } else {
            StopKind::Question(questions)
        },
        stop_reason: None,
    })
}

/// Resolves the lead agent, with the default model, and counts the reads of the list.
#[derive(Debug, Default)]
pub(crate) struct OneAgent {
    list_reads: AtomicUsize,
}

impl OneAgent {
    /// Returns how often the list of assistants was read.
    pub(crate) fn list_reads(&self) -> usize {
        self.list_reads.load(Ordering::Relaxed)
    }
}

fn lead() -> AssistantInfo {
    AssistantInfo {
        name: "lead_agent".to_owned(),
        description: Some("Echoes".to_owned()),
    }
}

#[async_trait]
impl AgentResolver for OneAgent {
    async fn resolve(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Arc<dyn Agent>, UnknownAssistant> {
        match (assistant, options.get("model_name").and_then(Value::as_str)) {
            ("lead_agent", None | Some("fake")) => Ok(Arc::new(Echo)),
            ("lead_agent", Some(model)) => Err(UnknownAssistant::UnknownModel(model.to_owned())),
            (other, _) => Err(UnknownAssistant::NotFound(other.to_owned())),
        }
    }

    async fn pin(
        &self,
        assistant: &str,
        options: &Map<String, Value>,
    ) -> Result<Option<AssistantPin>, UnknownAssistant> {
        match options.get("model_name").and_then(Value::as_str) {
            Some("invalid") => Err(UnknownAssistant::Invalid {
                name: assistant.to_owned(),
                findings: vec![json!({ "code": "a" }), json!({ "code": "b" })],
            }),
            _ => Ok(None),
        }
    }

    async fn list(&self) -> Vec<AssistantInfo> {
        self.list_reads.fetch_add(1, Ordering::Relaxed);
        vec![lead()]
    }

    async fn find(&self, name: &str) -> Option<AssistantInfo> {
        Some(lead()).filter(|lead| lead.name == name)
    }

    async fn default_assistant(&self) -> Option<AssistantInfo> {
        Some(lead())
    }
}
