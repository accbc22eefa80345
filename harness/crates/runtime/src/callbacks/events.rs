//! Builds the journal rows of a run: messages for the transcript, other events as trace.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::human_input::{self, HumanInput};
use super::pending_answers::{AnswerState, PendingAnswer, PendingAnswers};
use super::subagents;
use super::tokens::EXCERPT_CHARS;
use crate::agent::{AgentEvent, MiddlewareAction, ModelCallRecord, is_auxiliary, is_flow_node};
use crate::definition::RunFailure;
use crate::ports::{EventContent, NewRunEvent, category};
use deerflow_core::clock::Clock;
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::messages::{Message, kwargs};
use deerflow_core::state::ThreadState;

/// Type of the row with the human message of a run.
pub(crate) const HUMAN_INPUT: &str = "llm.human.input";
/// Type of the row that records the memory context of a run.
pub(crate) const MEMORY_CONTEXT: &str = "context:memory";

/// Builder of a run's journal rows.
#[derive(Debug)]
pub(crate) struct RunEventCallback {
    thread_id: ThreadId,
    run_id: RunId,
    user_id: Option<String>,
    clock: Arc<dyn Clock>,
    pub(super) max_trace_chars: usize,
    pending: Vec<NewRunEvent>,
    human: HumanInput,
    memory_is_written: bool,
    /// Answers that are not journaled yet: hooks after the model may still change them, and the
    /// journal and the state must contain the same message.
    pending_answers: PendingAnswers,
    /// Ids of the completed answers.
    answers: HashSet<String>,
    last_answer: Option<String>,
    message_count: u64,
    llm_calls: u64,
    pub(super) node_events: u64,
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
            human: HumanInput::None,
            memory_is_written: false,
            pending_answers: PendingAnswers::default(),
            last_answer: None,
            answers: HashSet::new(),
            message_count: 0,
            llm_calls: 0,
            node_events: 0,
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

    /// Sets the human message of the run, for the transcript. It is the last one of the input,
    /// because a client may send earlier messages again. Hidden messages are skipped unless they
    /// answer an interrupt.
    pub(crate) fn human(&mut self, state: &ThreadState, input_ids: &[String]) {
        if let Some(message) = human_input::find(state, input_ids) {
            self.human = HumanInput::Pending(message.clone());
        }
    }

    /// Replaces the human message by the version that `state` has.
    pub(crate) fn human_completed(&mut self, state: &ThreadState) {
        self.human.update(state);
    }

    /// Records that an earlier attempt has journaled the human message.
    pub(crate) fn set_human_written(&mut self) {
        self.human.set_written();
    }

    /// Records that an earlier attempt has journaled the memory context.
    pub(crate) fn set_memory_written(&mut self) {
        self.memory_is_written = true;
    }

    pub(crate) fn on_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Step(step) => {
                self.human.update(&step.state);
                self.pending_answers.update(&step.state);
                if step.checkpoint {
                    self.write_final();
                }
            }
            AgentEvent::ModelRequest {
                caller,
                model,
                message_count,
                ..
            } => {
                if !is_auxiliary(caller) {
                    self.write_human();
                    self.write_final();
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
                self.write_final();
                self.trace(
                    "tool.start",
                    json!({ "tool_call_id": call_id, "name": name }),
                );
            }
            AgentEvent::ToolEnd(call) => {
                self.write_final();
                let metadata = Map::from_iter([("latency_ms".to_owned(), json!(call.latency_ms))]);
                self.message("llm.tool.result", &call.message, metadata);
            }
            AgentEvent::Custom(payload) => {
                let text = self.clip(&payload.to_string());
                self.trace("custom_event", json!({ "payload": text }));
            }
            AgentEvent::NodeEvent(payload) => self.node_event(payload),
            AgentEvent::Subagent(subagent_event) => {
                let (event_type, content, metadata) = subagents::row(subagent_event);
                self.push(event_type, category::SUBAGENT, content, metadata);
            }
            AgentEvent::Done(_) => {
                self.write_human();
                self.write_all();
            }
            _ => {}
        }
    }

    /// Journals the partial answer of a cancelled run, or a text that was added at the end of the
    /// run. Has no effect if the answer was completed.
    pub(crate) fn partial_answer(&mut self, message: &Message) {
        if message
            .id
            .as_ref()
            .is_some_and(|id| self.answers.contains(id))
        {
            return;
        }
        self.write_all();
        let metadata = Map::from_iter([
            ("caller".to_owned(), json!("lead_agent")),
            ("incomplete".to_owned(), json!(true)),
        ]);
        self.message("llm.ai.response", message, metadata);
    }

    /// Journals the end of the run with its last state.
    pub(crate) fn run_ended(
        &mut self,
        status: &str,
        failure: Option<&RunFailure>,
        state: &ThreadState,
    ) {
        self.write_human();
        self.write_all();
        match failure {
            Some(RunFailure { name, message }) => {
                let text = self.clip(message);
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

    /// Journals the receipt of presented files.
    pub(crate) fn delivered(&mut self, receipt: Value) {
        self.push("run.delivery", category::OUTPUTS, receipt, Map::new());
    }

    pub(crate) fn message_count(&self) -> u64 {
        self.message_count
    }

    pub(crate) fn first_human_excerpt(&self) -> Option<String> {
        self.human.excerpt()
    }

    pub(crate) fn last_answer_excerpt(&self) -> Option<String> {
        self.last_answer.clone()
    }

    pub(crate) fn flush(&mut self) -> Vec<NewRunEvent> {
        std::mem::take(&mut self.pending)
    }

    /// Journals a model call that is not part of the conversation: an auxiliary one, or one of a
    /// nested agent.
    pub(crate) fn nested_model_call(&mut self, call: &ModelCallRecord) {
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
        self.push("llm.ai.response", category::TRACE, answer, metadata);
    }

    fn write_final(&mut self) {
        let answers = self.pending_answers.take_final();
        answers
            .into_iter()
            .for_each(|answer| self.write_answer(answer));
    }

    fn write_all(&mut self) {
        let answers = self.pending_answers.take_all();
        answers
            .into_iter()
            .for_each(|answer| self.write_answer(answer));
    }

    /// Journals an answer. If a hook removed it from the thread, the answer is journaled as trace
    /// and is not part of the transcript.
    fn write_answer(
        &mut self,
        PendingAnswer {
            message,
            metadata,
            state,
        }: PendingAnswer,
    ) {
        if state == AnswerState::Removed {
            return self.trace_answer(&message, metadata);
        }
        let text = message.content.text_start(EXCERPT_CHARS);
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
        if call.is_auxiliary() || is_flow_node(&call.caller) {
            return self.nested_model_call(call);
        }
        let mut metadata = self.facts_of(call);
        if call.message.flag(kwargs::INCOMPLETE) {
            metadata.insert("incomplete".to_owned(), json!(true));
        }
        self.write_human();
        self.answers.extend(call.message.id.clone());
        self.pending_answers.push(call.message.clone(), metadata);
    }

    pub(crate) fn write_human(&mut self) {
        if let Some(message) = self.human.take_pending() {
            self.message(
                HUMAN_INPUT,
                &message,
                Map::from_iter([("caller".to_owned(), json!("lead_agent"))]),
            );
        }
    }

    /// Journals the memory context once per run, because all of its model calls receive the same.
    /// Only a digest is stored, not the content.
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
        self.push(event_type, category::MESSAGE, message.clone(), metadata);
    }

    pub(super) fn trace(&mut self, event_type: &str, content: impl Into<EventContent>) {
        self.push(event_type, category::TRACE, content, Map::new());
    }

    pub(super) fn push(
        &mut self,
        event_type: &str,
        category: &str,
        content: impl Into<EventContent>,
        metadata: Map<String, Value>,
    ) {
        self.pending.push(NewRunEvent {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
            user_id: self.user_id.clone(),
            event_type: event_type.to_owned(),
            category: category.to_owned(),
            content: content.into(),
            metadata,
            created_at: self.clock.now(),
        });
    }

    fn clip(&self, text: &str) -> String {
        text.chars().take(self.max_trace_chars).collect()
    }
}

/// Returns the channels of the final state. Messages are omitted, because each has a row of its
/// own.
fn outputs(state: &ThreadState) -> Value {
    state
        .wire_channels()
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect::<Map<_, _>>()
        .into()
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
