//! What became of a question, as a client and its model read it.

use harness::client::{EventKind, StreamEvent};
use harness::ids::{RunId, ThreadId};
use harness::messages::{Content, kwargs};
use rmcp::model::{CallToolResult, ContentBlock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is said when a run ends without a word.
const SILENT: &str = "The agent ended without an answer.";

/// The structured result of `ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Answer {
    /// The conversation: a call of `ask` with it goes on there.
    pub(super) thread_id: String,
    /// The run that answered.
    pub(super) run_id: String,
    /// The agent's final words; empty when it said nothing.
    pub(super) text: String,
    /// What the agent wants to know before it goes on. Answer with a call of `ask` on the same thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<String>,
    /// The files that the agent presented on this thread so far; `read_artifact` reads them.
    pub(super) artifacts: Vec<String>,
    /// What the conversation is called, once it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// What this answer cost.
    pub(super) usage: Usage,
}

/// Tokens of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Usage {
    /// Tokens that models read.
    pub(super) input_tokens: u64,
    /// Tokens that they wrote.
    pub(super) output_tokens: u64,
    /// Both together, as providers count them.
    pub(super) total_tokens: u64,
}

/// What a run has come to so far.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    state: Value,
    usage: Usage,
    question: Option<String>,
}

impl Outcome {
    /// Takes an event in.
    pub(super) fn take(&mut self, event: StreamEvent) {
        match event.kind {
            EventKind::Values => self.state = event.data,
            EventKind::End => self.usage = serde_json::from_value(event.data["usage"].clone()).unwrap_or_default(),
            // A card is the last word of its turn: what follows was said knowing the answer.
            _ if event.text().is_some() => self.question = None,
            EventKind::MessagesTuple if event.data["artifact"]["human_input"].is_object() => {
                self.question = event.data["content"].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }

    /// All of it, when the run is over.
    pub(super) fn answer(self, thread: &ThreadId, run: &RunId) -> Answer {
        let artifacts = self.state["artifacts"].as_array().into_iter().flatten();
        Answer {
            thread_id: thread.to_string(),
            run_id: run.to_string(),
            text: last_words(&self.state["messages"]),
            question: self.question,
            artifacts: artifacts.filter_map(Value::as_str).map(str::to_owned).collect(),
            title: self.state["title"].as_str().filter(|title| !title.is_empty()).map(str::to_owned),
            usage: self.usage,
        }
    }
}

/// The last text of the agent since the user last spoke, as its guards left it.
fn last_words(messages: &Value) -> String {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_users = |message: &&Value| message["type"] == "human" && message["additional_kwargs"][kwargs::HIDE_FROM_UI] != true;
    let turn = messages.iter().rev().take_while(|message| !is_users(message));
    let mut texts = turn.filter(|message| message["type"] == "ai").map(|message| Content::text_in(&message["content"]));
    texts.find(|text| !text.trim().is_empty()).unwrap_or_default()
}

impl Answer {
    /// As a result of the tool. Clients that show no structured content to their model find how to go on in a text of its own.
    pub(super) fn into_result(self) -> CallToolResult {
        let mut content = Vec::new();
        if !self.text.is_empty() {
            content.push(ContentBlock::text(self.text.clone()));
        }
        if let Some(question) = &self.question {
            content.push(ContentBlock::text(format!("The agent asks, and goes on when it is answered:\n\n{question}")));
        }
        if content.is_empty() {
            content.push(ContentBlock::text(SILENT));
        }
        content.push(ContentBlock::text(self.way_on()));
        let mut result = CallToolResult::success(content);
        result.structured_content = serde_json::to_value(self).ok();
        result
    }

    fn way_on(&self) -> String {
        let to_do = if self.question.is_some() { "answer" } else { "go on" };
        let mut way = format!("[To {to_do}, call ask with thread_id {}.", self.thread_id);
        if !self.artifacts.is_empty() {
            way.push_str(&format!(" read_artifact reads its files: {}.", self.artifacts.join(", ")));
        }
        way.push(']');
        way
    }
}

/// A result that says in words why there is no other.
pub(super) fn failure(problem: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(problem)])
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
