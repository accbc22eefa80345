//! Collects the result of a question, for the client and its model.

use harness::client::{EventKind, Question, StreamEvent};
use harness::ids::{RunId, ThreadId};
use harness::messages::{Content, kwargs};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Text of a result without an answer.
const NO_ANSWER: &str = "The agent ended without an answer.";

/// Text of a result whose run waits for the user.
const WAITING_NOTICE: &str =
    "The agent is not done: it waits for a person, whom this client could not ask. It needs";

/// The structured result of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The conversation: a call of `ask` with it goes on there.
    pub(crate) thread_id: String,
    /// The run that answered.
    pub(crate) run_id: String,
    /// The agent's final words; empty when it said nothing.
    pub(crate) text: String,
    /// What the agent wants to know before it goes on. Answer with a call of `ask` on the same thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question: Option<String>,
    /// Calls that a person has to allow before the agent goes on, and what else only a person can say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waits_for: Vec<String>,
    /// The files that the agent presented on this thread so far; `read_artifact` reads them.
    pub(crate) artifacts: Vec<String>,
    /// What the conversation is called, once it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// What this answer cost.
    pub(crate) usage: Usage,
    /// Shell command with which a user approves the pending calls.
    #[serde(skip)]
    approval_command: String,
}

/// Tokens of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Usage {
    /// Tokens that models read.
    pub(crate) input_tokens: u64,
    /// Tokens that they wrote.
    pub(crate) output_tokens: u64,
    /// Both together, as providers count them.
    pub(crate) total_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.total_tokens = self.total_tokens.saturating_add(more.total_tokens);
    }
}

/// Intermediate result of a question, over all runs that it needed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    state: Value,
    usage: Usage,
    question: Option<String>,
    /// Interrupts that are pending after the run.
    pub(crate) open: Vec<Question>,
    /// `true` if the run was cancelled.
    pub(crate) is_cancelled: bool,
}

impl Outcome {
    /// Updates the result with an event.
    pub(crate) fn observe(&mut self, event: StreamEvent) {
        match event.kind {
            EventKind::Values => self.state = event.data,
            EventKind::End => {
                self.usage += serde_json::from_value::<Usage>(event.data["usage"].clone())
                    .unwrap_or_default();
                self.is_cancelled = event.is_cancelled();
                self.open = event.questions();
            }
            // A clarification is the last output before the user answers, so text after it means
            // that the question was answered.
            _ if event.text().is_some() => self.question = None,
            EventKind::MessagesTuple if event.data["artifact"]["human_input"].is_object() => {
                self.question = event.data["content"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }

    /// Builds the final result. `approval_command` is the shell command that approves pending
    /// calls.
    pub(crate) fn answer(self, thread: &ThreadId, run: &RunId, approval_command: String) -> Answer {
        let artifacts = self.state["artifacts"].as_array().into_iter().flatten();
        Answer {
            thread_id: thread.to_string(),
            run_id: run.to_string(),
            text: final_text(&self.state["messages"]),
            question: self.question,
            waits_for: self.open.iter().map(describe).collect(),
            artifacts: artifacts
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            title: self.state["title"]
                .as_str()
                .filter(|title| !title.is_empty())
                .map(str::to_owned),
            usage: self.usage,
            approval_command,
        }
    }
}

/// Describes an interrupt in words.
pub(crate) fn describe(question: &Question) -> String {
    let Some(calls) = question.calls() else {
        return question.text();
    };
    let describe = calls.iter().map(|call| {
        let reason = call
            .reason
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        format!(
            "approval to call {} with {}{reason}",
            call.name, call.arguments
        )
    });
    describe.collect::<Vec<_>>().join("; ")
}

/// Returns the last text of the agent after the last user message, as modified by its middlewares.
fn final_text(messages: &Value) -> String {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_users = |message: &&Value| {
        message["type"] == "human" && message["additional_kwargs"][kwargs::HIDE_FROM_UI] != true
    };
    let turn = messages
        .iter()
        .rev()
        .take_while(|message| !is_users(message));
    let mut texts = turn
        .filter(|message| message["type"] == "ai")
        .map(|message| Content::text_in(&message["content"]));
    texts
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}

impl Answer {
    /// Converts the answer to a tool result. The next steps are also given as text, for clients
    /// that do not show structured content to their model.
    pub(crate) fn into_result(self) -> CallToolResult {
        let mut content = Vec::new();
        if !self.text.is_empty() {
            content.push(ContentBlock::text(self.text.clone()));
        }
        if let Some(question) = &self.question {
            content.push(ContentBlock::text(format!(
                "The agent asks, and goes on when it is answered:\n\n{question}"
            )));
        }
        if !self.waits_for.is_empty() {
            content.push(ContentBlock::text(format!(
                "{WAITING_NOTICE}\n\n{}",
                self.waits_for.join("\n")
            )));
        }
        if content.is_empty() {
            content.push(ContentBlock::text(NO_ANSWER));
        }
        content.push(ContentBlock::text(self.next_step()));
        let mut result = CallToolResult::success(content);
        result.structured_content = serde_json::to_value(self).ok();
        result
    }

    fn next_step(&self) -> String {
        let thread = &self.thread_id;
        let mut way = match (self.waits_for.is_empty(), &self.question) {
            (true, None) => format!("[To go on, call ask with thread_id {thread}."),
            (true, Some(_)) => format!("[To answer, call ask with thread_id {thread}."),
            (false, _) => format!(
                "[A person answers in the web UI, or with `{}`. A call of ask on it drops that.",
                self.approval_command
            ),
        };
        if !self.artifacts.is_empty() {
            way.push_str(&format!(
                " read_artifact reads its files: {}.",
                self.artifacts.join(", ")
            ));
        }
        way.push(']');
        way
    }
}

/// Builds an error result with a text.
pub(crate) fn failure(problem: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(problem)])
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
