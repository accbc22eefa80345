//! Writes the journal of a run: messages for the transcript, the rest as trace.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answers::{Awaited, AwaitedAnswers, Place};
use super::subagents;
use crate::clock::Clock;
use crate::ids::{RunId, ThreadId};
use crate::messages::{Message, kwargs};
use crate::runtime::agent::{AgentEvent, MiddlewareAction, ModelCallRecord, is_aside};
use crate::runtime::runs::store::{NewRunEvent, category};
use crate::state::{CHANNELS, ThreadState};

/// The type of the row that has the question of a run.
pub(crate) const HUMAN_INPUT: &str = "llm.human.input";
/// The type of the row that says which memory the model was shown.
pub(crate) const MEMORY_CONTEXT: &str = "context:memory";

/// The journal of one run, before it is stored.
#[derive(Debug)]
pub(crate) struct RunEventCallback {
    thread_id: ThreadId,
    run_id: RunId,
    user_id: Option<String>,
    clock: Arc<dyn Clock>,
    max_trace_chars: usize,
    pending: Vec<NewRunEvent>,
    human: Human,
    memory_is_written: bool,
    /// Answers are journaled when the hooks behind the model are done with them: a message must read the same in the journal
    /// and in the state.
    awaited: AwaitedAnswers,
    /// The ids of the answers that came to their end.
    answers: HashSet<String>,
    last_answer: Option<String>,
    message_count: u64,
    llm_calls: u64,
}

/// The question of the run. It is journaled when the first answer begins, for middlewares stamp it until then, and a message
/// must read the same in the journal and in the state.
#[derive(Debug)]
enum Human {
    None,
    Awaited(Message),
    Written(String),
}

impl RunEventCallback {
    pub(crate) fn new(
        thread_id: ThreadId,
        run_id: RunId,
        user_id: Option<String>,
        clock: Arc<dyn Clock>,
        max_trace_chars: usize,
    ) -> Self {
        Self {
            thread_id,
            run_id,
            user_id,
            clock,
            max_trace_chars,
            pending: Vec::new(),
            human: Human::None,
            memory_is_written: false,
            awaited: AwaitedAnswers::default(),
            last_answer: None,
            answers: HashSet::new(),
            message_count: 0,
            llm_calls: 0,
        }
    }

    pub(crate) fn run_started(&mut self, assistant: &str) {
        self.push(
            "run.start",
            category::TRACE,
            json!({ "chain": assistant }),
            Map::new(),
        );
    }

    /// The last human message of the input that belongs in a transcript: not hidden, or an answer to a question of ours. The
    /// last, for a client may send the messages of before once more with its question.
    pub(crate) fn human(&mut self, state: &ThreadState, input_ids: &[String]) {
        let persistable = |message: &&Message| {
            message.is_human()
                && message.name.as_deref() != Some("summary")
                && (!message.flag(kwargs::HIDE_FROM_UI)
                    || message
                        .additional_kwargs
                        .contains_key(kwargs::HUMAN_INPUT_RESPONSE))
                && message.id.as_ref().is_some_and(|id| input_ids.contains(id))
        };
        if let Some(message) = state.messages().iter().rfind(persistable) {
            self.human = Human::Awaited(message.clone());
        }
    }

    /// The message that awaits being written is in the journal already, by an earlier attempt.
    pub(crate) fn human_is_written(&mut self) {
        if let Human::Awaited(message) = &self.human {
            self.human = Human::Written(message.content.text());
        }
    }

    /// Which memory the model was shown is in the journal already, by an earlier attempt.
    pub(crate) fn memory_is_written(&mut self) {
        self.memory_is_written = true;
    }

    pub(crate) fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Step(step) => {
                self.update_human(&step.state);
                self.awaited.follow(&step.state);
                if step.checkpoint {
                    self.write_settled();
                }
            }
            AgentEvent::ModelRequest {
                caller,
                model,
                message_count,
                ..
            } => {
                if !is_aside(caller) {
                    self.write_human();
                    self.write_settled();
                }
                self.trace(
                    "llm.request",
                    json!({ "caller": caller, "model": model, "message_count": message_count }),
                );
            }
            AgentEvent::ModelCall(call) => self.model_call(call),
            AgentEvent::MemoryShown { content_sha256 } => self.write_memory(content_sha256),
            AgentEvent::MiddlewareAction(done) => self.middleware_action(done),
            AgentEvent::ModelError { caller, error } => {
                let error = self.clip(error);
                self.trace("llm.error", json!({ "caller": caller, "error": error }));
            }
            AgentEvent::ToolStart { call_id, name } => {
                self.write_settled();
                self.trace(
                    "tool.start",
                    json!({ "tool_call_id": call_id, "name": name }),
                );
            }
            AgentEvent::ToolEnd(call) => {
                self.write_settled();
                let metadata = Map::from_iter([("latency_ms".to_owned(), json!(call.latency_ms))]);
                self.message("llm.tool.result", &call.message, metadata);
            }
            AgentEvent::Custom(payload) => {
                let text = self.clip(&payload.to_string());
                self.trace("custom_event", json!({ "payload": text }));
            }
            AgentEvent::Subagent(news) => {
                let (event_type, content, metadata) = subagents::row(news);
                self.push(event_type, category::SUBAGENT, content, metadata);
            }
            AgentEvent::Done(_) => {
                self.write_human();
                self.write_rest();
            }
            _ => {}
        }
    }

    /// The part of an answer that a cancel left, or a text the run's end added; nothing when the answer had come to its end.
    pub(crate) fn partial_answer(&mut self, message: &Message) {
        if message
            .id
            .as_ref()
            .is_some_and(|id| self.answers.contains(id))
        {
            return;
        }
        self.write_rest();
        let metadata = Map::from_iter([
            ("caller".to_owned(), json!("lead_agent")),
            ("incomplete".to_owned(), json!(true)),
        ]);
        self.message("llm.ai.response", message, metadata);
    }

    /// The end of the run, which reached `state`.
    pub(crate) fn run_ended(
        &mut self,
        status: &str,
        error: Option<(&str, &str)>,
        state: &ThreadState,
    ) {
        self.write_human();
        self.write_rest();
        match error {
            Some((name, text)) => {
                let text = self.clip(text);
                self.push(
                    "run.error",
                    category::ERROR,
                    Value::String(text),
                    Map::from_iter([("error_type".to_owned(), json!(name))]),
                );
            }
            None => self.push(
                "run.end",
                category::OUTPUTS,
                outputs(state),
                Map::from_iter([("status".to_owned(), json!(status))]),
            ),
        }
    }

    /// The receipt of what the run presented.
    pub(crate) fn delivered(&mut self, receipt: Value) {
        self.push("run.delivery", category::OUTPUTS, receipt, Map::new());
    }

    pub(crate) fn message_count(&self) -> u64 {
        self.message_count
    }

    pub(crate) fn first_human_text(&self) -> Option<String> {
        match &self.human {
            Human::None => None,
            Human::Awaited(message) => Some(message.content.text()),
            Human::Written(text) => Some(text.clone()),
        }
    }

    pub(crate) fn last_answer_text(&self) -> Option<String> {
        self.last_answer.clone()
    }

    pub(crate) fn flush(&mut self) -> Vec<NewRunEvent> {
        std::mem::take(&mut self.pending)
    }

    /// A model call beside the conversation, of the framework or of an agent inside a call.
    pub(crate) fn model_call_inside(&mut self, call: &ModelCallRecord) {
        let metadata = self.facts_of(call);
        self.trace_answer(&call.message, metadata);
    }

    fn middleware_action(&mut self, done: &MiddlewareAction) {
        let MiddlewareAction {
            tag,
            name,
            hook,
            action,
            changes,
        } = done;
        let content = json!({ "name": name, "hook": hook, "action": action, "changes": changes });
        self.push(
            &format!("middleware:{tag}"),
            category::MIDDLEWARE,
            content,
            Map::new(),
        );
    }

    fn trace_answer(&mut self, answer: &Message, metadata: Map<String, Value>) {
        let answer = answer.with(|body| body.content = self.clip(&body.content.text()).into());
        self.push("llm.ai.response", category::TRACE, json!(answer), metadata);
    }

    fn write_settled(&mut self) {
        let settled = self.awaited.settled();
        settled
            .into_iter()
            .for_each(|answer| self.write_answer(answer));
    }

    fn write_rest(&mut self) {
        let rest = self.awaited.rest();
        rest.into_iter()
            .for_each(|answer| self.write_answer(answer));
    }

    /// What a guard has taken back is no part of the transcript, but it was said.
    fn write_answer(
        &mut self,
        Awaited {
            message,
            metadata,
            place,
        }: Awaited,
    ) {
        if place == Place::Gone {
            return self.trace_answer(&message, metadata);
        }
        let text = message.content.text();
        if !text.is_empty() {
            self.last_answer = Some(text);
        }
        self.message("llm.ai.response", &message, metadata);
    }

    fn facts_of(&mut self, call: &ModelCallRecord) -> Map<String, Value> {
        self.llm_calls += 1;
        Map::from_iter([
            ("caller".to_owned(), json!(call.caller)),
            ("model".to_owned(), json!(call.model)),
            ("usage".to_owned(), json!(call.usage)),
            ("latency_ms".to_owned(), json!(call.latency_ms)),
            ("llm_call_index".to_owned(), json!(self.llm_calls)),
        ])
    }

    fn model_call(&mut self, call: &ModelCallRecord) {
        if call.is_aside() {
            return self.model_call_inside(call);
        }
        let mut metadata = self.facts_of(call);
        if call.message.flag(kwargs::INCOMPLETE) {
            metadata.insert("incomplete".to_owned(), json!(true));
        }
        self.write_human();
        self.answers.extend(call.message.id.clone());
        self.awaited.push(call.message.clone(), metadata);
    }

    fn update_human(&mut self, state: &ThreadState) {
        if let Human::Awaited(held) = &self.human
            && let Some(now) = state
                .messages()
                .iter()
                .rfind(|message| message.id == held.id)
        {
            self.human = Human::Awaited(now.clone());
        }
    }

    pub(crate) fn write_human(&mut self) {
        if let Human::Awaited(message) = &self.human {
            let message = message.clone();
            let mut shown = message.clone();
            if let Some(original) = message
                .additional_kwargs
                .get(kwargs::ORIGINAL_USER_CONTENT)
                .and_then(Value::as_str)
            {
                shown = message.with(|body| body.content = original.into());
            }
            self.human = Human::Written(shown.content.text());
            self.message(
                HUMAN_INPUT,
                &shown,
                Map::from_iter([("caller".to_owned(), json!("lead_agent"))]),
            );
        }
    }

    /// Once per run: each of its model calls is shown the same. The digest tells runs apart without keeping what is remembered.
    fn write_memory(&mut self, content_sha256: &str) {
        if !std::mem::replace(&mut self.memory_is_written, true) {
            self.push(
                MEMORY_CONTEXT,
                category::CONTEXT,
                json!({ "content_sha256": content_sha256 }),
                Map::new(),
            );
        }
    }

    fn message(&mut self, event_type: &str, message: &Message, metadata: Map<String, Value>) {
        self.message_count += 1;
        let content = serde_json::to_value(message).unwrap_or(Value::Null);
        self.push(event_type, category::MESSAGE, content, metadata);
    }

    fn trace(&mut self, event_type: &str, content: Value) {
        self.push(event_type, category::TRACE, content, Map::new());
    }

    fn push(
        &mut self,
        event_type: &str,
        category: &str,
        content: Value,
        metadata: Map<String, Value>,
    ) {
        self.pending.push(NewRunEvent {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            user_id: self.user_id.clone(),
            event_type: event_type.to_owned(),
            category: category.to_owned(),
            content,
            metadata,
            created_at: self.clock.now(),
        });
    }

    fn clip(&self, text: &str) -> String {
        text.chars().take(self.max_trace_chars).collect()
    }
}

/// The state a run reached, without its messages: each has a row of its own, and a thread would be journaled anew by every run.
fn outputs(state: &ThreadState) -> Value {
    CHANNELS
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), state.channel(name)?.clone())))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
